"""What JAX looks like to the rest of pybridge, whatever its version.

`internals` alone names JAX's private modules, and `equations` alone reads the parameters of equations whose
parameters differ between versions. A new release of JAX is answered in these two.
"""
