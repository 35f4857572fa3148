"""Random functions of float64 arrays, over all kinds of primitives and of control flow, that shrink.

A `Recipe` is data: steps, each an operation of `recipe_ops` or `recipe_control` on earlier values. `run`
makes a JAX function of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st
from recipe_control import CONTROL, UNMAPPED, WHOLE_ONLY
from recipe_ops import BINARY, LARGEST, SHAPED, SHAPED_BINARY, UNARY
from recipe_shapes import Shape, conform

SHAPES: list[Shape] = [(), (3,), (2, 3), (1,), (2, 1, 3), (0,), (3, 2, 2), (2, 0), (1, 2)]


@dataclass(frozen=True)
class Step:
    op: str
    operands: tuple[int, ...]
    params: tuple = ()


@dataclass(frozen=True)
class Recipe:
    """inputs: their shapes. results: each a value and the shape that it is brought to."""

    inputs: tuple[Shape, ...]
    steps: tuple[Step, ...]
    results: tuple[tuple[int, Shape], ...]

    def ops(self) -> set[str]:
        """The operations, those of nested recipes included."""
        nested = (p.ops() for s in self.steps for p in s.params if isinstance(p, Recipe))
        return {s.op for s in self.steps}.union(*nested)


def run(recipe: Recipe, *args, reference: bool = False) -> tuple[Any, ...]:
    """The results for these arrays. `reference`: without control flow, see recipe_control."""
    values = list(args)
    for step in recipe.steps:
        values.extend(_apply(step, [values[i] for i in step.operands], reference))
    return tuple(conform(values[i], shape) for i, shape in recipe.results)


def _apply(step: Step, xs: list[Any], reference: bool) -> tuple[Any, ...]:
    if step.op in UNARY:
        return (UNARY[step.op](*xs),)
    if step.op in BINARY:
        return (BINARY[step.op](xs[0], conform(xs[1], xs[0].shape)),)
    if step.op in CONTROL:
        runners = [
            functools.partial(run, p, reference=reference) if isinstance(p, Recipe) else p
            for p in step.params
        ]
        return tuple(CONTROL[step.op](xs, *runners, reference=reference))
    _, f = SHAPED[step.op] if step.op in SHAPED else SHAPED_BINARY[step.op]
    found = f(*xs, *step.params)
    return found if isinstance(found, tuple) else (found,)


def inputs_of(recipe: Recipe, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1.5, 1.5, shape) for shape in recipe.inputs]


# Strategies


@st.composite
def recipes(
    draw,
    inputs: tuple[Shape, ...] | None = None,
    results: tuple[Shape, ...] | None = None,
    depth: int = 2,
    steps: int = 6,
    whole: bool = True,
) -> Recipe:
    """A recipe of these inputs and results, or of random ones; nested ones have depth - 1.

    whole: operations that JAX cannot differentiate forwards may occur.
    """
    if inputs is None:
        inputs = tuple(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)))
    shapes, made = list(inputs), []
    for _ in range(draw(st.integers(0 if depth < 2 else 1, steps))):
        step = draw(_step(tuple(shapes), depth, whole))
        if step is None:
            continue
        found = _shapes(step, [shapes[i] for i in step.operands])
        if all(np.prod(s) <= LARGEST and len(s) <= 3 for s in found):
            made.append(step)
            shapes.extend(found)
    # Late values first: what was made should be used.
    places = st.integers(0, len(shapes) - 1).map(lambda k: len(shapes) - 1 - k)
    if results is None:
        chosen = draw(st.lists(places, min_size=1, max_size=2))
        return Recipe(inputs, tuple(made), tuple((i, shapes[i]) for i in chosen))
    return Recipe(inputs, tuple(made), tuple((draw(places), shape) for shape in results))


def _shapes(step: Step, operands: list[Shape]) -> list[Shape]:
    with jax.enable_x64(True):
        avals = [jax.ShapeDtypeStruct(s, np.float64) for s in operands]
        found = jax.eval_shape(lambda *xs: _apply(step, list(xs), True), *avals)
    assert all(a.dtype == np.float64 for a in found), (step, found)
    return [a.shape for a in found]


@st.composite
def _step(draw, shapes: tuple[Shape, ...], depth: int, whole: bool) -> Step | None:
    names = [*UNARY, *BINARY, *SHAPED, *SHAPED_BINARY]
    if depth and draw(st.integers(0, 3)) == 3:
        names = [n for n in CONTROL if whole or n not in WHOLE_ONLY]
    op = draw(st.sampled_from(names))
    place = st.integers(0, len(shapes) - 1).map(lambda k: len(shapes) - 1 - k)
    first = draw(place)
    if op in UNARY:
        return Step(op, (first,))
    if op in BINARY:
        return Step(op, (first, draw(place)))
    if op in CONTROL:
        return draw(_control(op, first, place, shapes, depth, whole))
    table, operands = (SHAPED, (first,)) if op in SHAPED else (SHAPED_BINARY, (first, draw(place)))
    params = table[op][0](draw, shapes[first])
    return None if params is None else Step(op, operands, params)


@st.composite
def _control(draw, op: str, first: int, place, shapes, depth: int, whole: bool) -> Step | None:
    """Bodies take two values and give one of the first one's type, or, in `call`s, two of any."""
    second = draw(place)
    x, y = shapes[first], shapes[second]

    def body(inputs, results):
        return draw(
            recipes(
                inputs,
                results,
                depth=depth - 1,
                steps=3,
                whole=whole and op not in ("custom_jvp", "custom_vjp"),
            )
        )

    operands = (first, second)
    match op:
        case "cond" | "switch":
            return Step(op, operands, tuple(body((x, y), (x, y)) for _ in range(2 if op == "cond" else 3)))
        case "scan":
            if not y:
                return None
            return Step(op, operands, (body((x, x, y[1:]), (x, y[1:])), draw(st.booleans())))
        case "while_counted" | "while_bounded" | "fori":
            return Step(op, operands, (body((x, y), (x,)), draw(st.integers(0, 3))))
        case "linear_call":
            return Step(op, operands, (body((x, y), (x,)),))
        case "ragged_dot":
            return Step(op, operands) if len(x) > 1 and 0 not in x else None
        case "vmap":
            mapped = body((x[1:], y), (x[1:],)) if x else None
            return Step(op, operands, (mapped,)) if mapped and not UNMAPPED & mapped.ops() else None
    return Step(op, operands, (body((x, y), (x, y)),))
