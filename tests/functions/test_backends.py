"""Julia functions with first derivatives by backends of ADTypes, through DifferentiationInterface."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.functions import backends

SOURCE = """
drag(u, p) = (v = p.k .* u .^ 2 .- sin.(p.A * u), energy = sum(abs2, u) * p.k)
function drag!(out, u, p)
    out.v .= p.k .* u .^ 2 .- sin.(p.A * u)
    out.energy[] = sum(abs2, u) * p.k
end
"""
# What DifferentiationInterface and JaxprAD have of their own, with the relative error to allow.
OWN = {"AutoSimpleFiniteDiff(1e-6)": 1e-6, "AutoJaxprAD()": 1e-12}
# Those of other packages too, where this Julia has them.
TOLERANCES = OWN | {"AutoForwardDiff()": 1e-12}


def drag(u, p):
    return {"v": p["k"] * u**2 - jnp.sin(p["A"] @ u), "energy": jnp.sum(u**2) * p["k"]}


def skip_without(engine):
    try:
        jax.jvp(pb.julia_function("sin", engine=engine), (1.0,), (1.0,))
    except pb.EngineUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def interface():
    """Skips without DifferentiationInterface."""
    skip_without("AutoSimpleFiniteDiff()")


def generated(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=3), {"k": rng.normal(), "A": rng.normal(size=(3, 3))}


@pytest.mark.parametrize("engine", TOLERANCES)
@pytest.mark.parametrize("name", ["drag", "drag!"])
@pytest.mark.usefixtures("interface")
def test_derivatives_are_those_of_jax(engine, name):
    if engine not in OWN:
        skip_without(engine)
    u, p = generated(0)
    shapes = jax.eval_shape(drag, u, p)
    f = pb.julia_function(name, source=SOURCE, engine=engine, inplace=name == "drag!", result=shapes)
    ours, theirs = jax.jit(_measured(f)), jax.jit(_measured(drag))
    for seed in range(3):
        args, directions = generated(seed), generated(seed + 100)
        found, expected = ours(args, directions), theirs(args, directions)
        for part, y in expected.items():
            assert_agree(found[part], y, f"{engine}: {part}", TOLERANCES[engine])


def _measured(f):
    def total(u, p):
        return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(u, p)))

    def compute(args, directions):
        u, p = args
        batch = jnp.stack([u, 2 * u])
        return {
            "value": f(u, p),
            "JVP": jax.jvp(f, args, directions)[1],
            "gradient": jax.grad(total, (0, 1))(u, p),
            "gradient by one": jax.grad(total)(u, p),
            "vmap of the gradient": jax.vmap(jax.grad(total, (0, 1)), (0, None))(batch, p),
        }

    return compute


@pytest.mark.usefixtures("interface")
def test_second_derivatives_are_refused():
    f = pb.julia_function("sin", engine="AutoSimpleFiniteDiff()")
    with pytest.raises(pb.NotDifferentiable, match="first derivatives"):
        jax.grad(jax.grad(f))(1.0)


@pytest.mark.usefixtures("interface")
def test_they_are_rows_of_comparisons():
    u, p = generated(1)
    f = pb.julia_function("drag", source=SOURCE, engine="transpose")
    result = pb.compare(f, u, p, engines=["jax"], candidates={"own": f.by("AutoJaxprAD()")}, repeats=0)
    assert result.ok and result["own"].state == "agrees"
    rows = [row.engine for row in pb.compare(f, u, p, repeats=0).rows]
    assert set(backends()) <= set(rows)


def test_what_is_missing_is_named():
    f = pb.julia_function("sin", engine="AutoNoSuchPackage()")
    assert f(0.5) == pytest.approx(np.sin(0.5))
    with pytest.raises(pb.EngineUnavailable, match=r"AutoNoSuchPackage\(\).*needs"):
        jax.grad(f)(0.5)


def test_engines_have_these_names():
    with pytest.raises(pb.UnknownOption, match="AutoForwardDiff"):
        pb.julia_function("sin", engine="zygote")
    f = pb.julia_function("sin").by("AutoZygote()")
    assert "AutoZygote()" in repr(f) and f.by("enzyme").function.backend is None
    assert all(code.startswith("Auto") for code in backends())
