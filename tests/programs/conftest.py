from unoptimised import unoptimised  # noqa: F401
