"""Cases that draw random numbers, which are JAX's to the bit: keys made inside, or passed as raw data."""

from __future__ import annotations

import jax
import jax.extend
import jax.numpy as jnp
from casekit import given, real, rows
from jax import lax

_KEY = given([12, 3_000_000_000], "u32")


def _typed(data):
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def _noisy(data, x):
    return x * jax.random.normal(_typed(data), x.shape, x.dtype)


def _many(data, x):
    """Keys split, folded, sliced, selected and carried through a loop."""
    key, other = jax.random.split(_typed(data))
    keys = jax.random.split(jax.random.fold_in(other, 7), (3, 2))[1:, 0]
    chosen = jnp.where(x[0, 0] > 0, key, keys[0])

    def step(carry, row):
        carry, now = jax.random.split(carry)
        return carry, row * jax.random.uniform(now, row.shape, row.dtype)

    last, rows_ = lax.scan(step, chosen, x)
    drawn = jax.vmap(lambda k: jax.random.normal(k, (2,), x.dtype))(keys)
    return rows_, drawn, jax.random.key_data(last), jax.random.permutation(keys[1], 5)


def _generated(shape, dtype):
    return lambda state: lax.rng_bit_generator(state, shape, dtype)


def _with_rbg(impl):
    def f(data, x):
        key, other = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(data, impl=impl), 3))
        return x * jax.random.normal(key, x.shape, x.dtype), jax.random.bits(other, (3,), jnp.uint8)

    return f


# Within the blocks that are drawn the sum with the counter goes into the next word, and past the last.
_STATES = given([7, 2**32 - 2, 2**64 - 2], "u64")

_GENERATED = [
    *(
        case
        for dtype in (jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64)
        for case in rows(
            "program",
            "u64",
            lambda states, dtype=dtype: [
                _generated((3, 5), dtype)(jnp.stack([states[2], s])) for s in states
            ],
            _STATES,
            batched=False,  # JAX draws all from the first state
            name=f"_rng_bit_generator_{jnp.dtype(dtype).name}",
        )
    ),
    *rows(
        "program",
        "u32",
        _generated((2, 0), jnp.uint32),
        given([1, 2, 3, 4]),
        name="_rng_nothing",
        batched=False,
    ),
    *rows("program", "u32", _generated((), jnp.uint16), given([1, 2, 3, 4]), name="_rng_one", batched=False),
    *(
        case
        for impl in ("rbg", "unsafe_rbg")
        for case in rows(
            "program",
            "f32 f64",
            _with_rbg(impl),
            given([1, 2, 3, 4], "u32"),
            real(-2, 2),
            active=(1,),
            exact=False,
            batched=False,
            name=f"_{impl}",
        )
    ),
]

CASES = [
    *_GENERATED,
    *rows(
        "threefry2x32",
        "u32",
        lambda k, n: jax.extend.random.threefry2x32_p.bind(k[0], k[1], n, n + 1),
        _KEY,
        given([0, 1, 4_000_000_000], "u32"),
    ),
    *rows(
        "threefry2x32", "f32 f64 bf16", _noisy, _KEY, real(-2, 2), active=(1,), exact=False, name="_normal"
    ),
    *rows("threefry2x32", "f32 f64", _many, _KEY, real(-2, 2), active=(1,), exact=False, name="_keys"),
    *rows(
        "threefry2x32",
        "f32",
        lambda data, x: x + jax.random.uniform(data, x.shape),
        _KEY,
        real(-2, 2),
        active=(1,),
        exact=False,
        name="_raw",
    ),
    *rows(
        "threefry2x32",
        "f64",
        lambda a: jax.random.gamma(jax.random.key(5), a),
        real(0.5, 5, (4,)),
        active=(0,),
        exact=False,
        name="_gamma",
    ),
]
