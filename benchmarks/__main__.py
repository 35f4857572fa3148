"""`python -m benchmarks`, the same as `pybridge bench`."""

from .command import app

app(prog_name="pybridge bench")
