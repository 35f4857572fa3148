"""Two levels at once: arrays by the transpose engine, a scalar loop in Julia by rules or by Enzyme.jl."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import QUICK
from covering import FULL

import pybridge as pb

CODE = """
"A reservoir that leaks, filled by inflows, with what runs over once it is full."
function reservoir(inflow, p)
    level, outflow = zero(eltype(p)), similar(inflow)
    for i in eachindex(inflow)
        level = p[1] * level + p[2] * inflow[i]
        over = max(level - 1, 0)
        level -= over
        outflow[i] = over + (1 - p[1]) * level
    end
    outflow
end
function reservoir_jvp((inflow, p), (d_inflow, dp))
    level, d_level, d_outflow = zero(eltype(p)), zero(eltype(p)), similar(inflow)
    for i in eachindex(inflow)
        d_level = dp[1] * level + p[1] * d_level + dp[2] * inflow[i] + p[2] * d_inflow[i]
        level = p[1] * level + p[2] * inflow[i]
        d_over = level > 1 ? d_level : zero(level)
        level, d_level = min(level, 1), d_level - d_over
        d_outflow[i] = d_over - dp[1] * level + (1 - p[1]) * d_level
    end
    d_outflow
end
function reservoir_vjp((inflow, p), ct)
    before, filled = similar(inflow), similar(inflow)
    level = zero(eltype(p))
    for i in eachindex(inflow)
        before[i] = level
        filled[i] = p[1] * level + p[2] * inflow[i]
        level = min(filled[i], 1)
    end
    inflow_bar, p_bar, level_bar = similar(inflow), zero(p), zero(level)
    for i in reverse(eachindex(inflow))
        level_bar += (1 - p[1]) * ct[i]
        p_bar[1] -= min(filled[i], 1) * ct[i]
        filled_bar = filled[i] > 1 ? ct[i] : level_bar
        p_bar[1] += before[i] * filled_bar
        p_bar[2] += inflow[i] * filled_bar
        inflow_bar[i] = p[2] * filled_bar
        level_bar = p[1] * filled_bar
    end
    (inflow_bar, p_bar)
end
"""


def by_rules():
    return pb.julia_function("reservoir", source=CODE, jvp="reservoir_jvp", vjp="reservoir_vjp")


def by_enzyme():
    return pb.julia_function("reservoir", source=CODE)


def in_jax(inflow, p):
    def step(level, x):
        level = p[0] * level + p[1] * x
        over = jnp.maximum(level - 1, 0)
        return level - over, over + (1 - p[0]) * (level - over)

    return jax.lax.scan(step, jnp.zeros(()), inflow)[1]


def model(simulator):
    """Arrays around the loop: a layer that makes the inflow, a second one that weighs what runs out."""

    def loss(weights, p, x):
        inflow = jnp.exp(weights["in"] @ x)
        return jnp.mean(jnp.tanh(weights["out"] @ simulator(inflow, p)) ** 2)

    return loss


def summed(f):
    """Over the rows of x, by a scan."""
    return lambda w, p, xs: jax.lax.scan(lambda sum_, x: (sum_ + f(w, p, x), None), 0.0, xs)[0]


def batch(f):
    return lambda w, p, xs: jnp.sum(jax.vmap(f, (None, None, 0))(w, p, xs) ** 2)


def arguments(seed: int, rows: int | None = None):
    rng = np.random.default_rng(seed)
    weights = {"in": rng.standard_normal((9, 4)), "out": rng.standard_normal((3, 9))}
    x = rng.standard_normal((4,) if rows is None else (rows, 4))
    return jax.tree.map(jnp.asarray, (weights, rng.uniform(0.3, 0.9, 2), x))


def check(make, simulator, rows, transform):
    found = transform(pb.bridge(make(model(simulator))))
    wanted = jax.jit(transform(make(model(in_jax))), compiler_options=QUICK)
    for seed in range(5 if FULL else 2):
        x = arguments(seed, rows)
        assert_agree(found(*x), wanted(*x), "two levels", 1e-10)


def hvp(f):
    return lambda *x: jax.jvp(lambda *x: jax.grad(f, (0, 1, 2))(*x), x, x)[1]


FIRST_ORDER = {
    "value": lambda f: f,
    "gradient": lambda f: jax.grad(f, (0, 1, 2)),
    "gradient under jit": lambda f: jax.jit(jax.grad(f, (0, 1, 2))),
    "tangent": lambda f: lambda *x: jax.jvp(f, x, x)[1],
    "linearized": lambda f: lambda *x: jax.linearize(f, *x)[1](*x),
    "Jacobian, forwards": lambda f: jax.jacfwd(f, 1),
}
AROUND = {"once": (lambda f: f, None), "in a scan": (summed, 3), "in a batch": (batch, 3)}


@pytest.mark.parametrize("transform", FIRST_ORDER.values(), ids=FIRST_ORDER)
@pytest.mark.parametrize(("make", "rows"), AROUND.values(), ids=AROUND)
def test_with_rules_of_ones_own(make, rows, transform):
    check(make, by_rules(), rows, transform)


@pytest.mark.enzyme
@pytest.mark.parametrize(
    "transform", [*FIRST_ORDER.values(), hvp, jax.hessian], ids=[*FIRST_ORDER, "HVP", "Hessian"]
)
@pytest.mark.parametrize(("make", "rows"), AROUND.values(), ids=AROUND)
def test_with_enzyme(enzyme, make, rows, transform):
    check(make, by_enzyme(), rows, transform)
