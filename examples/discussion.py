"""Two forms of one function, from a discussion of what `jax.make_jaxpr` shows of a gradient.

The second has the common subexpressions of the first written once, by hand. A good derivative compiler makes
the same of both.
"""

import jax.numpy as jnp


def plain(x1, x2):
    return (x1 / x2 - jnp.exp(x2)) * (jnp.sin(x1 / x2) + x1 / x2 - jnp.exp(x2))


def simplified(x1, x2):
    ratio = x1 / x2
    difference = ratio - jnp.exp(x2)
    return difference * (jnp.sin(ratio) + difference)


def example_args(name):
    return 1.5, 0.5
