"""Random keys, which JAX types as arrays of their own kind, as the raw unsigned integers that Programs hold.

A key of shape (n,) is raw data of shape (n, 2), say: the last axis belongs to the key's implementation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import UnsupportedPrimitive
from .adapter import internals, jaxprs
from .adapter.extend import threefry2x32_p
from .adapter.integers import mulhi


def is_key(x: Any) -> bool:
    """Whether an array or abstract value holds typed keys."""
    dtype = getattr(x, "dtype", None)
    return (
        not isinstance(dtype, np.dtype) and dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    )


def raw(x: Any) -> Any:
    """The data of keys; any other array as it is."""
    return jax.random.key_data(x) if is_key(x) else x


def raw_aval(aval: Any) -> Any:
    return internals.physical_aval(aval) if is_key(aval) else aval


def restored(x: Any, aval: Any) -> Any:
    """An array of a Program as what JAX traced in its place: keys, or an array of that weak type."""
    if is_key(aval):
        return internals.random_wrap(x, impl=aval.dtype._impl)
    return jaxprs.with_weak_type(x, aval.weak_type)


def threefry2x32(key1, key2, x1, x2):
    return threefry2x32_p.bind(key1, key2, x1, x2)


# Equations of jaxprs, as what they do to raw data


def moves_keys(eqn) -> bool:
    """Whether the equation moves keys about as it would numbers: slicing, stacking, selecting ..."""
    return any(is_key(v.aval) for v in (*eqn.invars, *eqn.outvars)) and not any(jaxprs.bodies(eqn))


def moved_data(eqn) -> jaxprs.ClosedJaxpr:
    """The same movement of the keys' data: the operation, mapped over the data's last axis."""
    axes = [-1 if is_key(v.aval) else None for v in eqn.invars]
    operation = functools.partial(eqn.primitive.bind, **eqn.params)
    return _traced(eqn, jax.vmap(operation, in_axes=axes, out_axes=-1) if any(axes) else operation)


def random_jaxpr(eqn) -> jaxprs.ClosedJaxpr:
    """An operation on keys, or a hash, as JAX itself computes it."""
    return _traced(eqn, functools.partial(_DEFINITIONS[eqn.primitive.name], eqn))


def _traced(eqn, f: Callable) -> jaxprs.ClosedJaxpr:
    avals = [raw_aval(v.aval) for v in eqn.invars]
    return jax.make_jaxpr(f)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))


def _seed(eqn, seeds):
    return internals.random_seed_impl_base(seeds, **eqn.params)


def _split(eqn, data):
    aval = eqn.invars[0].aval
    return internals.random_split_impl_base(aval.dtype._impl, data, aval.ndim, **eqn.params)


def _fold_in(eqn, data, numbers):
    aval = eqn.invars[0].aval
    return internals.random_fold_in_impl_base(aval.dtype._impl, data, numbers, aval.shape)


def _bits(eqn, data):
    aval = eqn.invars[0].aval
    return internals.random_bits_impl_base(aval.dtype._impl, data, aval.ndim, **eqn.params)


def _gamma(eqn, data, a):
    """JAX's sampler and, as its derivative by `a`, JAX's derivative of the implicit function."""
    impl = eqn.invars[0].aval.dtype._impl

    @jax.custom_jvp
    def sample(data, a):
        return internals.gamma_impl(internals.random_wrap(data, impl=impl), a, **eqn.params, use_vmap=True)

    @sample.defjvp
    def rule(primals, tangents):
        y = sample(*primals)
        return y, tangents[1] * internals.gamma_grad(y, primals[1], **eqn.params)

    return sample(data, a)


def _counters(eqn):
    """The positions in an array as 64-bit numbers in two halves."""
    shape = eqn.params["shape"]
    low = lax.reshape(lax.iota(np.uint32, math.prod(shape)), shape)
    return jnp.zeros_like(low), low


def _bit_generator(eqn, state):
    """XLA's own generator on CPU and GPU: Philox 4x32, ten rounds (Salmon, Moraes, Dror, Shaw 2011).

    The state holds a 64-bit key and a 64-bit counter, and block n is the hash of the 128-bit number counter +
    key 2^64 + n. The next state has the counter after the last block.
    """
    shape, dtype, algorithm = (eqn.params[name] for name in ("shape", "dtype", "algorithm"))
    if algorithm == lax.RandomAlgorithm.RNG_THREE_FRY:
        raise UnsupportedPrimitive("rng_bit_generator by RNG_THREE_FRY", primitive="rng_bit_generator")
    words = state if state.dtype == np.uint32 else lax.bitcast_convert_type(state, np.uint32).reshape(4)
    key, counter = (words[0], words[1]), (words[2], words[3])
    size = math.prod(shape)
    count = 2 * size if np.dtype(dtype) == np.uint64 else size
    blocks = lax.iota(np.uint32, -(-count // 4))
    low, carry = _sum(counter, blocks)
    high, _ = _sum(key, carry.astype(np.uint32))
    drawn = _philox4x32(key, (*low, *high))
    bits = jnp.stack(drawn, axis=1).reshape(-1)[:count]
    if np.dtype(dtype) == np.uint64:
        bits = lax.bitcast_convert_type(bits.reshape(size, 2), np.uint64)
    following, _ = _sum(counter, jnp.uint32(len(blocks)))
    words = jnp.stack([*key, *following])
    after = words if state.dtype == np.uint32 else lax.bitcast_convert_type(words.reshape(2, 2), np.uint64)
    return after, bits.astype(dtype).reshape(shape)


def _philox4x32(key, counter):
    """The hash of a counter of four words by a key of two, whose words grow by a constant each round."""
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for _ in range(10):
        high0, low0 = _product(np.uint32(0xD2511F53), x0)
        high1, low1 = _product(np.uint32(0xCD9E8D57), x2)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
    return x0, x1, x2, x3


def _product(factor, words):
    """The products with a number, each in two words, upper one first."""
    return mulhi(jnp.full_like(words, factor), words), factor * words


def _sum(number, small):
    """A number of two words, low one first, plus a small one; and whether two words do not hold it."""
    low = number[0] + small
    carry = (low < small).astype(np.uint32)
    high = number[1] + carry
    return (low, high), high < carry


def _words(eqn, *words):
    lowerings = {
        "threefry4x32": internals.threefry4x32_lowering,
        "philox2x32": internals.philox2x32_lowering,
        "philox4x32": internals.philox4x32_lowering,
    }
    return lowerings[eqn.primitive.name](*words)


_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "random_seed": _seed,
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_bits": _bits,
    "random_gamma": _gamma,
    "iota_2x32_shape": _counters,
    **dict.fromkeys(("threefry4x32", "philox2x32", "philox4x32"), _words),  # since JAX 0.10.2
    "rng_bit_generator": _bit_generator,
}

DEFINED = tuple(_DEFINITIONS)
"""The primitives that `random_jaxpr` knows."""
