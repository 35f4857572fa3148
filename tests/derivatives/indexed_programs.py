"""Random loops whose trips read and update single elements and windows of arrays that they carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

_LENGTH, _ROWS, _COLUMNS, _NUMBERS = 9, 5, 4, 6
_MODES = (None, "drop", "clip")


@dataclass(frozen=True)
class State:
    """What a trip has: an array, a matrix, integers that serve as indices, a number, and what is given."""

    a: jax.Array
    b: jax.Array
    k: jax.Array
    s: jax.Array
    given: jax.Array


jax.tree_util.register_dataclass(State, ["a", "b", "k", "s", "given"], [])
Step = Callable[[State, jax.Array], State]


def loop(seed: int) -> Callable:
    """A function of what `arguments` gives, to a number: random steps in a random loop."""
    rng = np.random.default_rng(seed)
    steps = [_MAKERS[rng.integers(len(_MAKERS))](rng) for _ in range(rng.integers(2, 6))]
    run = _LOOPS[rng.integers(len(_LOOPS))](rng, _sequence(steps))

    def f(a, b, given):
        end = run(State(a, b, jnp.arange(_LENGTH), jnp.asarray(0.5), given))
        return jnp.sum(end.a**2) + jnp.sum(jnp.sin(end.b)) + end.s

    return f


def arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array and a matrix, by which a loop is differentiated, and integers that its indices are made of."""
    return (
        rng.uniform(0.2, 1.0, _LENGTH),
        rng.uniform(0.2, 1.0, (_ROWS, _COLUMNS)),
        rng.integers(-3, 4, _NUMBERS),
    )


def _sequence(steps: list[Step]) -> Step:
    def all_of_them(state: State, t: jax.Array) -> State:
        for step in steps:
            state = step(state, t)
        return state

    return all_of_them


# Indices: of the trip, wrapped, repeated, negative, outside of the array, read from integers that the loop
# updates, and of numbers that are known only when it runs.


def _index(rng: np.random.Generator) -> Callable[[State, jax.Array], jax.Array]:
    c, d = int(rng.integers(0, 4)), int(rng.integers(-3, 4))
    p, q = (int(k) for k in rng.integers(0, _NUMBERS, 2))
    return [
        lambda st, t: t,
        lambda st, t: (c * t + d) % _LENGTH,
        lambda st, t: 3 * t + d,
        lambda st, t: d - t,
        lambda st, t: jnp.asarray(c),
        lambda st, t: st.k[t % _LENGTH],
        lambda st, t: (st.given[p] * t + st.given[q]) % _LENGTH,
        lambda st, t: st.given[p] * t + st.given[q],
        lambda st, t: st.given[t % _NUMBERS],
        lambda st, t: st.given[p],
    ][rng.integers(10)]


def _changed(state: State, **fields: jax.Array) -> State:
    return State(**{**vars(state), **fields})


def _read(rng):
    at, mode = _index(rng), _MODES[rng.integers(3)]
    get = {"mode": "fill", "fill_value": 0.25} if mode == "drop" else {"mode": mode}
    return lambda st, t: _changed(st, s=jnp.sin(st.s + st.a.at[at(st, t)].get(**get)))


def _set(rng):
    at, mode = _index(rng), _MODES[rng.integers(3)]
    return lambda st, t: _changed(st, a=st.a.at[at(st, t)].set(0.5 * st.s, mode=mode))


def _add(rng):
    at, mode = _index(rng), _MODES[rng.integers(3)]
    return lambda st, t: _changed(st, a=st.a.at[at(st, t)].add(0.1 * st.s * st.a[0], mode=mode))


def _multiply(rng):
    at = _index(rng)
    return lambda st, t: _changed(
        st, a=st.a.at[at(st, t)].multiply(jnp.cos(st.s), mode="drop", unique_indices=True)
    )


def _add_to_several(rng):
    at, offsets = _index(rng), jnp.asarray(rng.integers(-2, 5, 3))
    return lambda st, t: _changed(
        st, a=st.a.at[at(st, t) + offsets].add(st.s * jnp.arange(1.0, 4.0) / 9, mode="drop")
    )


def _move_window(rng):
    source, target, size = _index(rng), _index(rng), int(rng.integers(1, 4))

    def step(st, t):
        window = jax.lax.dynamic_slice(st.a, (source(st, t),), (size,))
        return _changed(st, a=jax.lax.dynamic_update_slice(st.a, 0.9 * window, (target(st, t),)))

    return step


def _fixed_window(rng):
    """A window of little of the array or of most of it, whose place is known before the loop runs."""
    size, change = int(rng.integers(1, _LENGTH)), ("set", "add", "multiply")[rng.integers(3)]
    source, target = (int(k) for k in rng.integers(0, _LENGTH - size + 1, 2))

    def step(st, t):
        window = 0.5 * st.s + st.a[source : source + size]
        return _changed(st, a=getattr(st.a.at[target : target + size], change)(window))

    return step


def _stencil(rng):
    """As users write them: slices of the whole matrix, but for edges."""
    rows = bool(rng.integers(2))

    def step(st, t):
        b = st.b if rows else st.b.T
        b = b.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3)
        b = b.at[1:, :].add(-0.5 * (b[1:, :] - b[:-1, :])).at[0, 1:].set(st.s)
        return _changed(st, b=b if rows else b.T)

    return step


def _row(rng):
    at = _index(rng)
    return lambda st, t: _changed(st, b=st.b.at[at(st, t) % _ROWS].set(jnp.sin(st.b[t % _ROWS] + st.s)))


def _element(rng):
    at = _index(rng)
    return lambda st, t: _changed(
        st, b=st.b.at[at(st, t) % _ROWS, t % _COLUMNS].add(st.a[0] * st.b[t % _ROWS, 1])
    )


def _neighbours(rng):
    """As Gauss-Seidel has it: an element becomes the mean of those around it."""
    at = _index(rng)

    def step(st, t):
        i, j = at(st, t) % (_ROWS - 2) + 1, t % (_COLUMNS - 2) + 1
        mean = (st.b[i - 1, j] + st.b[i, j - 1] + st.b[i, j] + st.b[i, j + 1] + st.b[i + 1, j]) / 5
        return _changed(st, b=st.b.at[i, j].set(mean))

    return step


def _integers(rng):
    at = _index(rng)
    return lambda st, t: _changed(st, k=st.k.at[at(st, t)].max(t, mode="drop").at[0].add(1))


def _whole(rng):
    return lambda st, t: _changed(st, a=0.9 * jnp.roll(st.a, 1) + 0.1 * st.a)


def _inner_loop(rng):
    inner = _MAKERS[rng.integers(_INNER)](rng)
    trips = int(rng.integers(1, 4))
    return lambda st, t: jax.lax.fori_loop(0, trips, lambda j, st: inner(st, t + j), st)


def _branch(rng):
    inner = _MAKERS[rng.integers(_INNER)](rng)
    return lambda st, t: jax.lax.cond(t % 2 == 0, lambda st: inner(st, t), lambda st: st, st)


def _both(rng):
    """The array before an update is read after it."""
    at = _index(rng)

    def step(st, t):
        before = st.a
        after = before.at[at(st, t)].set(st.s, mode="drop")
        return _changed(st, a=after, s=0.5 * (before[at(st, t)] + after[t % _LENGTH]))

    return step


_INNER = 12
_MAKERS: tuple[Callable[[np.random.Generator], Step], ...] = (
    _read,
    _set,
    _add,
    _multiply,
    _add_to_several,
    _move_window,
    _fixed_window,
    _stencil,
    _row,
    _element,
    _neighbours,
    _integers,
    _whole,
    _both,
    _branch,
    _inner_loop,
)


def _fori(rng, step: Step):
    trips = int(rng.integers(1, 8))
    return lambda st: jax.lax.fori_loop(0, trips, lambda t, st: step(st, t), st)


def _scan(rng, step: Step):
    trips, reverse = int(rng.integers(1, 8)), bool(rng.integers(2))

    def run(st):
        end, seen = jax.lax.scan(
            lambda st, t: (step(st, t), st.s * st.a[1]), st, jnp.arange(trips), reverse=reverse
        )
        return _changed(end, s=end.s + jnp.sum(seen))

    return run


def _two_levels(rng, step: Step):
    outer, inner = (int(n) for n in rng.integers(1, 4, 2))
    return lambda st: jax.lax.fori_loop(
        0, outer, lambda i, st: jax.lax.fori_loop(0, inner, lambda j, st: step(st, i + 2 * j), st), st
    )


_LOOPS = (_fori, _scan, _two_levels)
