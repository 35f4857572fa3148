"""The tests: a package, so that `python -m tests.quick` does not find an installed package of that name."""
