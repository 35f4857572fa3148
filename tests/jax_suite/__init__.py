"""JAX's own tests of derivatives, run on bridged functions: `python -m tests.jax_suite FILE --execute julia`.

FILE is a test module of JAX's repository, such as tests/lax_autodiff_test.py; it is not part of this one.
"""
