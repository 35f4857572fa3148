"""Random functions: value, JVP, VJP and HVP are JAX's, and what Julia makes of them keeps its promises.

`PYBRIDGE_EXAMPLES=1000` tries as many, other ones in every run; by default the same fifteen each time, or
sixty where everything is tested.
"""

from __future__ import annotations

import os
import tempfile

import c_libraries
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import QUICK
from covering import FULL
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from recipe_control import UNMAPPED, WHOLE_ONLY
from recipes import Recipe, inputs_of, recipes, run

import pybridge as pb
from pybridge.runtime import evaluation, linker, transforms

EXAMPLES = int(os.environ.get("PYBRIDGE_EXAMPLES", "0"))


def _count(most: int) -> int:
    """How many examples a test tries: `most` where everything is tested."""
    return EXAMPLES or (most if FULL else most // 4)


PHASES = (Phase.explicit, Phase.generate, Phase.shrink)
SETTINGS = settings(
    max_examples=_count(60),
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
    print_blob=True,
)
SEEDS = st.integers(0, 2**16)
TOLERANCE = 1e-9
SINGLE = 5e-3
"""Of numbers that have lost half of their digits on the way to a second derivative."""
LARGEST = 1e6
"""Beyond this rounding errors are amplified too much to compare by."""
EXECUTES = ["xla", "julia"]


class Example:
    """A recipe at a point, with directions of the inputs and cotangents of the results."""

    def __init__(self, recipe: Recipe, seed: int, dtype: type = np.float64):
        self.recipe = recipe
        self.x, self.other = ([x.astype(dtype) for x in inputs_of(recipe, n)] for n in (seed, seed + 2))
        rng = np.random.default_rng(seed + 1)
        self.dx = [rng.standard_normal(shape).astype(dtype) for shape in recipe.inputs]
        self.ct = tuple(rng.standard_normal(shape).astype(dtype) for _, shape in recipe.results)
        self.forward = not WHOLE_ONLY & recipe.ops()
        self.mapped = not UNMAPPED & recipe.ops()

    def f(self, *xs):
        return run(self.recipe, *xs)

    def reference(self, *xs):
        """The same with loops that JAX can run backwards."""
        return run(self.recipe, *xs, reference=True)

    def derivatives(self, f) -> dict:
        """Value, JVP, VJP and HVP (forward over reverse) of f, and the first and third of these mapped."""
        stacked = [np.stack(pair) for pair in zip(self.x, self.other, strict=True)]

        def compute(x, dx, ct, stacked):
            def pull(*x):
                return jax.vjp(f, *x)[1](ct)

            found = dict(zip(("vjp", "hvp"), jax.jvp(pull, x, dx), strict=True))
            if self.mapped:
                found |= {"vmap": jax.vmap(f)(*stacked), "vmap of vjp": jax.vmap(pull)(*stacked)}
            if self.forward:
                return found | dict(zip(("value", "jvp"), jax.jvp(f, x, dx), strict=True))
            return found | {"value": f(*x)}

        run = jax.jit(compute, compiler_options=QUICK)
        try:
            return jax.block_until_ready(run(tuple(self.x), tuple(self.dx), self.ct, stacked))
        except jax.errors.JaxRuntimeError as e:
            # XLA fails at transforms of arrays in another layout, which factors of 1x1 matrices come in.
            assume("fft_thunk" not in str(e))
            raise


@pytest.mark.timeout(0 if EXAMPLES else 600)
@SETTINGS
@given(recipes(), SEEDS, st.sampled_from(EXECUTES))
def test_derivatives_are_those_of_jax(recipe, seed, execute):
    with jax.enable_x64(True):
        example = Example(recipe, seed)
        expected = _compare(example, execute, TOLERANCE)
        _check_programs(example, expected)


@pytest.mark.timeout(0 if EXAMPLES else 600)
@settings(SETTINGS, max_examples=_count(20))
@given(recipes(), SEEDS, st.sampled_from(EXECUTES))
def test_derivatives_are_those_of_jax_in_single_precision(recipe, seed, execute):
    with jax.enable_x64(False):
        _compare(Example(recipe, seed, np.float32), execute, SINGLE)


@pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no libraries")
@pytest.mark.timeout(0 if EXAMPLES else 600)
@settings(SETTINGS, max_examples=_count(12))
@given(recipes(), SEEDS)
def test_libraries_for_c_have_the_derivatives_of_jax(recipe, seed):
    with jax.enable_x64(True), tempfile.TemporaryDirectory() as folder:
        example = Example(recipe, seed)
        expected = example.derivatives(example.reference)
        assume(all(np.abs(y).max(initial=0) < LARGEST for y in jax.tree.leaves(expected)))
        names = ("value", "vjp", "jvp") if example.forward else ("value", "vjp")
        made = pb.compile_library(example.f, "f", names, directory=folder)(*example.x)
        value = c_libraries.call(made, "value", *example.x, shift=1)
        assert_agree(value, expected["value"], "value", TOLERANCE)
        pulled = c_libraries.call(made, "vjp", *example.x, *example.ct, in_workspace=True)
        assert_agree(pulled, expected["vjp"], "vjp", TOLERANCE)
        if example.forward:
            pushed = c_libraries.call(made, "jvp", *example.x, *example.dx)
            assert_agree(pushed, [*expected["value"], *expected["jvp"]], "jvp", TOLERANCE)


def _compare(example: Example, execute: str, tolerance: float) -> dict:
    """JAX's results, which pybridge's are to be."""
    expected = example.derivatives(example.reference)
    assume(all(np.isfinite(y).all() for y in jax.tree.leaves(expected)))
    assume(all(np.abs(y).max(initial=0) < LARGEST for y in jax.tree.leaves(expected)))
    found = example.derivatives(pb.bridge(example.f, execute=execute))
    for name, y in expected.items():
        assert_agree(found[name], y, name, tolerance)
    return expected


def _check_programs(example: Example, expected: dict) -> None:
    """The derivative Programs themselves, run by Julia."""
    p = pb.trace(example.f)(*map(jnp.asarray, example.x))
    vjp = p.vjp()
    programs = {"value": p, "vjp": vjp}
    arguments = {"value": example.x, "vjp": [*example.x, *example.ct]}
    if example.forward:
        programs["jvp"], arguments["jvp"] = p.jvp(), [*example.x, *example.dx]
        expected = expected | {"jvp": (*expected["value"], *expected["jvp"])}
    for name, program in programs.items():
        _check_text(program)
        assert_agree(
            evaluation.evaluate(program, *arguments[name]), expected[name], f"Julia's {name}", TOLERANCE
        )
        shorter = program.optimize()
        _check_text(shorter)
        assert shorter.equation_count() <= program.equation_count(), name
        assert_agree(
            evaluation.evaluate(shorter, *arguments[name]), expected[name], f"optimised {name}", TOLERANCE
        )
    _check_nested(example, programs, expected)
    if example.forward:
        _check_transpose(example, p)


def _check_text(program: pb.Program) -> None:
    """Both languages read and print the same text, and Julia finds the types right."""
    text = program.text
    assert str(pb.parse(text, program.constants)) == text
    assert str(transforms.normalize(program)) == text


def _check_nested(example: Example, programs: dict, expected: dict) -> None:
    """Derivatives of derivatives typecheck; forward over reverse is as in JAX, with its adjoint."""
    n = len(example.x)
    vjp = programs["vjp"]
    active = range(n)
    hvp = transforms.jvp(vjp, active)
    _check_text(hvp)
    found = evaluation.evaluate(hvp, *example.x, *example.ct, *example.dx)
    assert_agree(found, (*expected["vjp"], *expected["hvp"]), "Julia's hvp", TOLERANCE)
    reverse = transforms.vjp(vjp, active)
    nested = [reverse] if not example.forward else [reverse, transforms.vjp(programs["jvp"], active)]
    for program in nested:
        _check_text(program)
        _check_text(program.optimize())
    w = [np.cos(1 + np.arange(x.size)).reshape(x.shape) for x in example.x]
    pulled = evaluation.evaluate(reverse.optimize(), *example.x, *example.ct, *w)
    _assert_adjoint(w, expected["hvp"], pulled, example.dx)


def _assert_adjoint(v, pushed, pulled, u) -> None:
    """⟨v, A u⟩ = ⟨Aᵀ v, u⟩, where A u and Aᵀ v are given."""
    left = sum(np.vdot(a, b) for a, b in zip(v, pushed, strict=True))
    right = sum(np.vdot(a, b) for a, b in zip(pulled, u, strict=True))
    pairs = [*zip(v, pushed, strict=True), *zip(pulled, u, strict=True)]
    size = 1 + sum(np.abs(a).sum() * np.abs(b).max(initial=0) for a, b in pairs)
    assert abs(left - right) <= TOLERANCE * size, (left, right)


def _check_transpose(example: Example, p: pb.Program) -> None:
    """⟨v, J u⟩ = ⟨Jᵀ v, u⟩ for the linear part of the linearization and its transpose."""
    lin = p.linearize()
    r = lin.residuals
    _check_text(lin.known)
    _check_text(lin.linear)
    residuals = evaluation.evaluate(lin.known, *example.x)[len(p.outputs) :]
    assert len(residuals) == r
    v = [ct for ct, has in zip(example.ct, lin.has_tangent, strict=True) if has]
    ju = evaluation.evaluate(lin.linear, *residuals, *example.dx)
    backward = transforms.transpose(lin.linear, range(r, r + len(example.x)))
    _check_text(backward)
    jtv = evaluation.evaluate(backward, *residuals, *v)
    _assert_adjoint(v, ju, jtv, example.dx)
