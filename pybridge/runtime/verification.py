"""Derivatives held against difference quotients before a function is used: `verify=True`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EngineUnavailable, WrongDerivative
from ..frontend.adapter import jaxprs
from ..frontend.dimensions import is_symbolic
from ..quotients import Direction, allowed_error, finite_cotangent, magnitude, normal, widened

Arrays = Sequence[np.ndarray]
Change = Callable[[float], list[np.ndarray]]


def verify(f: Callable[..., Sequence[Any]], arrays: Sequence[Any], names: Sequence[str], what: str) -> None:
    """Raise WrongDerivative where the JVP or VJP of `f` at these arrays is not the slope of its values.

    Each float or complex array is moved along a random direction by itself, and each result is paired with a
    random cotangent. Kinks, jumps, noise and values that are not finite show no derivative to be wrong.
    Arrays whose values are not known, as under `jit` and `vmap`, are drawn from the normal distribution;
    integers and bools are ones then. Where shapes have symbols, or random keys and objects are not known,
    there is nothing to run.

    names: of the arrays, in the error. what: the function's, with what it was made with.
    """
    known = [jaxprs.known_value(x) for x in arrays]
    if not all(v is not None or _may_be_drawn(x) for x, v in zip(arrays, known, strict=True)):
        return
    with jax.ensure_compile_time_eval():
        rng = np.random.default_rng(0)
        point = [_drawn(rng, x) if v is None else v for x, v in zip(arrays, known, strict=True)]
        of_floats = _OfFloats.of(f, point)
        if not of_floats.point or not of_floats.value:
            return
        where = "random arrays" if any(v is None for v in known) else "the arguments of this call"
        found = next(_wrong(of_floats, names, rng), None)
        if found is not None:
            raise WrongDerivative(
                f"{what}: {found}, at {where}. pybridge.check and pybridge.compare show more; another engine "
                "may have it right"
            )


def _may_be_drawn(x: Any) -> bool:
    return jaxprs.is_array(x) and not any(map(is_symbolic, x.shape))


def _drawn(rng: np.random.Generator, like: Any) -> jax.Array:
    if not jaxprs.is_inexact(like):
        return jnp.ones(like.shape, like.dtype)
    return jnp.asarray(normal(rng, like), like.dtype)


@dataclass(frozen=True)
class _OfFloats:
    """A function of the float and complex arrays among its arguments, whose float and complex results count.

    run: (*arrays) -> results. point, value: where its derivatives are looked at, and the results there.
    places: of the arrays among all arguments.
    """

    run: Callable[..., tuple[jax.Array, ...]]
    point: tuple[jax.Array, ...]
    value: tuple[jax.Array, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, f: Callable[..., Sequence[Any]], point: Sequence[Any]) -> _OfFloats:
        places = tuple(i for i, x in enumerate(point) if jaxprs.is_inexact(x))
        of_some = jaxprs.at_places(f, places, point)

        @jax.jit
        def run(*active: Any) -> tuple[jax.Array, ...]:
            return tuple(y for y in of_some(*active) if jaxprs.is_inexact(y))

        active = tuple(jnp.asarray(point[i]) for i in places)
        return cls(run, active, run(*active) if active else (), places)

    def moved(self, place: int, step: np.ndarray) -> list[np.ndarray]:
        """The results where one array is another by this step, which is rounded once."""
        at = list(self.point)
        at[place] = jnp.asarray((widened(at[place]) + step).astype(at[place].dtype))
        return [widened(y) for y in self.run(*at)]

    def jvp(self, place: int, tangent: np.ndarray) -> Arrays:
        """The results' tangents by that of one array alone."""
        dots = [jnp.zeros_like(x) for x in self.point]
        dots[place] = jnp.asarray(tangent, self.point[place].dtype)
        return [widened(t) for t in jax.jvp(self.run, self.point, tuple(dots))[1]]

    def vjps(self, cotangents: Arrays) -> list[Arrays]:
        """For each result the arrays' cotangents by that of this result alone."""
        pulled = jax.vjp(self.run, *self.point)[1]
        zeros = [jnp.zeros_like(y) for y in self.value]
        return [
            [widened(x) for x in pulled((*zeros[:k], jnp.asarray(u, self.value[k].dtype), *zeros[k + 1 :]))]
            for k, u in enumerate(cotangents)
        ]

    @property
    def epsilon(self) -> float:
        return max(float(jnp.finfo(x.dtype).eps) for x in (*self.point, *self.value))


def _wrong(f: _OfFloats, names: Sequence[str], rng: np.random.Generator) -> Iterator[str]:
    """What is wrong, in words."""
    tangents, values = [normal(rng, x) for x in f.point], [widened(y) for y in f.value]
    cotangents = [finite_cotangent(normal(rng, y), y) for y in values]
    pulled, pushed = _either(
        lambda: f.vjps(cotangents), lambda: [f.jvp(place, v) for place, v in enumerate(tangents)]
    )
    allowed = allowed_error(f.epsilon)
    for place, tangent in enumerate(tangents):
        scale = magnitude(widened(f.point[place]))
        direction = Direction(tangent, scale, _change(f, values, place, tangent), f.epsilon, allowed)
        for k, (value, u) in enumerate(zip(values, cotangents, strict=True)):
            tangent_of_result = None if pushed is None else pushed[place][k]
            cotangent_of_array = None if pulled is None else pulled[k][place]
            judgements = direction.judge(k, value, u, tangent_of_result, cotangent_of_array)
            for found in reversed(judgements):  # a gradient is what most people use
                if found.verdict == "wrong":
                    yield (
                        f"the {found.mode} of result {k} by {names[f.places[place]]} along a random "
                        f"direction is {found.derivative:.9g}, and difference quotients tend to "
                        f"{found.slope.slope:.9g}"
                    )


def _either(*modes: Callable[[], list[Arrays]]) -> list[list[Arrays] | None]:
    """What each mode gives, or None, since rules may be for one mode alone; the error where none is there."""
    results: list[list[Arrays] | None] = []
    for mode in modes:
        try:
            results.append(mode())
        except (TypeError, EngineUnavailable) as e:  # JAX's for what has no such mode; NotDifferentiable
            failure = e
            results.append(None)
    if not any(results):
        raise failure
    return results


def _change(f: _OfFloats, values: Arrays, place: int, tangent: np.ndarray) -> Change:
    """What all results change by where one array is moved along the tangent; computed once for each step."""

    @functools.cache
    def change(h: float) -> list[np.ndarray]:
        return [y - start for y, start in zip(f.moved(place, h * tangent), values, strict=True)]

    return change
