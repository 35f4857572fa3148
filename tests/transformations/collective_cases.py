"""Functions that speak between devices, and what is done to each: test_collectives.py, on eight devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from agreement import assert_agree
from casekit import computed
from covering import covering
from jax import lax
from jax._src.ad_checkpoint import saved_residuals  # JAX prints them publicly, and returns them here
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import jaxprs_in_params
from jax.sharding import PartitionSpec as P

import pybridge as pb

N = 8
RING = [(k, (k + 1) % N) for k in range(N)]
RNG = np.random.default_rng(11)
W = jnp.asarray(RNG.uniform(0.5, 1.5, (4,)), jnp.float32)
X = jnp.asarray(RNG.uniform(-1, 1, (2 * N, 4)), jnp.float32)


@dataclass(frozen=True)
class Case:
    """f: (w, x) -> a number that is the same on all devices; w is, x is split along its first axis.

    segments: how many Programs are bound, those of bodies counted once.
    types: whether JAX is to know which values are the same on all devices (`check_vma`).
    without: what JAX cannot do with it.
    """

    f: Callable
    segments: int
    types: bool = True
    without: tuple[str, ...] = ()


def total(y) -> Any:
    return lax.psum(jnp.sum(y), "i")


# Each collective


def psum(w, x):
    y = jnp.sin(w * x)
    return total(jnp.tanh(lax.psum(y, "i")) * y)


def pmean(w, x):
    y = jnp.sin(w * x)
    return total((y - lax.pmean(y, "i")) ** 2) + jnp.sum(w**2)


def psum_of_a_tree(w, x):
    tree = lax.psum({"a": jnp.sin(w * x), "b": (jnp.sum(x * w), jnp.float32(1))}, "i")
    return jnp.sum(jnp.cos(tree["a"])) * tree["b"][0] / tree["b"][1]


def all_gather(w, x):
    everything = lax.all_gather(jnp.sin(w * x), "i", tiled=True)
    return total(jnp.tanh(everything @ (w * x).T))


def all_gather_untiled(w, x):
    everything = lax.all_gather(jnp.sin(w * x), "i", axis=1)
    return total(jnp.tanh(everything) * x[:, None] ** 2)


def psum_scatter(w, x):
    rows = jnp.outer(jnp.sin(jnp.arange(N) + 1.0), jnp.sum(jnp.tanh(w * x), 0))
    return total(lax.psum_scatter(rows, "i", tiled=True) ** 2)


def all_to_all(w, x):
    rows = jnp.sin(jnp.outer(jnp.arange(1.0, N + 1), x[0] * w))
    return total(jnp.cos(lax.all_to_all(rows, "i", 0, 1, tiled=True)) * x[0, 0])


def ppermute(w, x):
    y = jnp.sin(w * x)
    return total(y * jnp.cos(lax.ppermute(y, "i", RING)))


def pmax(w, x):
    y = w * x
    top = lax.pmax(lax.stop_gradient(jnp.max(y)), "i")
    bottom = lax.pmin(lax.stop_gradient(jnp.min(y)), "i")
    return top + jnp.log(total(jnp.exp(y - top))) + bottom


def axis_index(w, x):
    """It takes no time: one segment goes before the sum."""
    place = lax.axis_index("i") / lax.axis_size("i")
    return total(jnp.sin(w * x * (1 + place)))


def of_an_argument(w, x):
    """What is summed at once needs no segment before it."""
    return total(jnp.sin(w * lax.psum(x, "i")) * x)


def several_at_once(w, x):
    """Three sums that do not wait for one another: a segment before them, a segment behind."""
    a, b = total(jnp.sin(w * x)), total(jnp.cos(w * x))
    return a * b + lax.pmean(jnp.sum(x * w), "i") ** 2


# Control flow and the user's rules


def in_scan(w, x):
    def step(carry, shift):
        mean = lax.pmean(jnp.sum(jnp.sin(carry * x + shift), 0), "i")
        return carry + 0.1 * jnp.tanh(mean), jnp.sum(mean)

    carry, ys = lax.scan(step, w, jnp.arange(3.0))
    return jnp.sum(carry**2) + jnp.sum(jnp.sin(ys))


def in_fori_loop(w, x):
    def step(k, carry):
        return carry + 0.1 * k * lax.pmean(jnp.sum(jnp.sin(carry * x), 0), "i")

    return jnp.sum(lax.fori_loop(0, 3, step, w) ** 2)


def loop_without_collectives(w, x):
    """A counter that is the same on all devices next to a carry that is not: still one segment."""
    return total(lax.fori_loop(0, 3, lambda k, y: jnp.sin(y * w) + k, x))


def in_cond(w, x):
    def summed(y):
        return jnp.sin(lax.psum(y, "i"))

    return jnp.sum(lax.cond(jnp.sum(w) > 0, summed, lambda y: lax.psum(2 * y, "i"), jnp.cos(w * x)))


def in_while(w, x):
    def residual(v):
        return lax.pmean(jnp.mean(jnp.cos(v * x), 0), "i") - v

    def go_on(state):
        return (jnp.max(jnp.abs(residual(state[0]))) > 1e-3) & (state[1] < 20)

    v, _ = lax.while_loop(go_on, lambda s: (s[0] + 0.7 * residual(s[0]), s[1] + 1), (w, 0))
    return jnp.sum(v**2)


def in_jit(w, x):
    mean = jax.jit(lambda y: lax.pmean(jnp.mean(jnp.sin(y), 0), "i"))
    return jnp.sum(mean(w * x) * mean(w + x))


def in_checkpoint(w, x):
    @jax.checkpoint
    def layer(w, y):
        return jnp.sin(y * w) + lax.pmean(jnp.sum(jnp.cos(y * w)), "i")

    return total(layer(w, layer(w, x)))


def in_custom_jvp(w, x):
    @jax.custom_jvp
    def f(y):
        return lax.psum(jnp.sin(y), "i")

    f.defjvp(lambda primals, tangents: (f(*primals), 3 * lax.psum(jnp.cos(primals[0]) * tangents[0], "i")))
    return jnp.sum(f(w * x) ** 2)


def in_custom_vjp(w, x):
    @jax.custom_vjp
    def f(y):
        return lax.all_gather(jnp.sin(y), "i", tiled=True)

    def back(y, ct):
        return (3 * jnp.cos(y) * lax.psum_scatter(ct, "i", tiled=True),)

    f.defvjp(lambda y: (f(y), y), back)
    return total(f(w * x) ** 2 @ x.T)


def only_in_the_rule(w, x):
    """As in tensor-parallel layers: the identity, whose cotangents are summed."""

    @jax.custom_vjp
    def f(y):
        return 1.0 * y

    f.defvjp(lambda y: (f(y), None), lambda _, ct: (lax.psum(ct, "i") / N + 0 * ct,))
    return total(jnp.sin(f(w * x)) * x)


# Programs


def training_step(w, x):
    """Gradients inside of the bridged function, averaged over devices."""

    def loss(w):
        return lax.pmean(jnp.mean((jnp.tanh(x @ w) - x[:, 0]) ** 2), "i")

    for _ in range(2):
        w = w - 0.1 * jax.grad(loss)(w)
    return loss(w)


def ring_attention(w, x):
    """Keys and values go round a ring (Liu, Zaharia, Abbeel 2023, Ring Attention)."""
    queries, keys, values = x * w, jnp.tanh(x), jnp.sin(x)

    def step(carry, _):
        keys, values, top, weight, found = carry
        scores = queries @ keys.T
        higher = jnp.maximum(top, jnp.max(scores, 1))
        scale, shares = jnp.exp(top - higher), jnp.exp(scores - higher[:, None])
        found = found * scale[:, None] + shares @ values
        weight = weight * scale + jnp.sum(shares, 1)
        keys, values = (lax.ppermute(y, "i", RING) for y in (keys, values))
        return (keys, values, higher, weight, found), None

    start = keys, values, queries[:, 0] * 0 - 1e3, queries[:, 0] * 0, values * 0
    *_, weight, found = lax.scan(step, start, length=N)[0]
    return total((found / weight[:, None]) ** 2)


def stencil(w, x):
    """Diffusion on a ring of cells: each device needs one cell of each neighbour."""
    back = [(b, a) for a, b in RING]

    def step(u, _):
        left, right = lax.ppermute(u[-1:], "i", RING), lax.ppermute(u[:1], "i", back)
        padded = jnp.concatenate([left, u, right])
        return u + 0.1 * w * (padded[:-2] - 2 * u + padded[2:]), None

    return total(lax.scan(step, x, length=4)[0] ** 3)


def tensor_parallel(w, x):
    """Two layers: the first one's columns and the second one's rows are split over the devices."""
    whole = lax.all_gather(x, "i", tiled=True)
    columns = jnp.outer(w, jnp.sin(x[0]))
    hidden = jnp.tanh(whole @ columns)
    mine = lax.psum_scatter(hidden @ columns.T, "i", tiled=True)
    return total((mine - x) ** 2)


def random_numbers(w, x):
    """A key of each device's own crosses from segment to segment."""
    key = jax.random.fold_in(jax.random.key(1), lax.axis_index("i"))
    first, second = jax.random.split(key)
    mean = lax.pmean(jnp.mean(w * x * jax.random.uniform(first, x.shape)), "i")
    return total(jnp.sin(mean * w * x) * jax.random.uniform(second, x.shape))


def linear_solve(w, x):
    """Normal equations whose matrix no device has."""

    def matvec(v):
        return lax.psum(x.T @ (x @ v), "i") + v

    return jnp.sum(jnp.sin(jax.scipy.sparse.linalg.cg(matvec, w, maxiter=6)[0]))


def outer_shard_map(w, x):
    """The function at hand is bridged with the `shard_map` in it, and equations around that."""
    return jnp.sin(mapped(ring_attention)(2 * w, jnp.tanh(x)))


def outer_vmap(w, x):
    """Axes that vmap names."""
    return jnp.sum(jax.vmap(in_scan, (None, 0), axis_name="i")(w, x.reshape(N, -1, 4)))


_FORWARD = ("forward", "forward over reverse")
_REVERSE = ("forward over reverse", "vmap of grad")

CASES = {
    case.f.__name__: case
    for case in (
        *(Case(f, 2) for f in (psum, psum_of_a_tree, all_gather, all_gather_untiled, psum_scatter)),
        *(Case(f, 2) for f in (all_to_all, ppermute, several_at_once, in_jit, random_numbers)),
        *(Case(f, 3) for f in (pmean, pmax, in_fori_loop, in_custom_jvp, ring_attention, stencil)),
        *(Case(f, 1) for f in (axis_index, of_an_argument, loop_without_collectives)),
        Case(in_scan, 4),
        Case(in_cond, 5),
        Case(in_while, 5, without=_REVERSE),
        Case(in_checkpoint, 5),
        Case(in_custom_vjp, 3, without=_FORWARD),
        Case(only_in_the_rule, 3, without=_FORWARD),
        Case(training_step, 4),
        Case(tensor_parallel, 2),
        Case(linear_solve, 16, types=False),
    )
}


# What is done to them


def mapped(f: Callable, types: bool = True) -> Callable:
    mesh = jax.make_mesh((N,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(f, mesh=mesh, in_specs=(P(), P("i")), out_specs=P(), check_vma=types)


def segments(jaxpr, name: str = "julia_call") -> int:
    """The Programs that are bound, those in bodies too."""
    return sum(
        (eqn.primitive.name == name) + sum(segments(body, name) for body in jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


def count(name: str, types: bool) -> int:
    g = mapped(pb.bridge(CASES[name].f), types)
    return segments(jax.make_jaxpr(g)(W, X).jaxpr)


def check(name: str, what: str, types: bool, **options) -> None:
    """The bridged function agrees with the function as it is."""
    f = CASES[name].f
    ours, theirs = (DONE[what](mapped(g, types)) for g in (pb.bridge(f, **options), f))
    assert_agree(ours, theirs, f"{name}, {what}", 1e-4)


def check_whole(name: str, what: str, **options) -> None:
    f = {"shard_map": outer_shard_map, "vmap": outer_vmap}[name]
    ours, theirs = (DONE[what](g) for g in (pb.bridge(f, **options), f))
    assert_agree(ours, theirs, f"{name}, {what}", 1e-4)


def check_eager(**options) -> None:
    for f, types in covering([psum, in_scan], [True, False], least=1):
        ours, theirs = (jax.value_and_grad(mapped(h, types))(W, X) for h in (pb.bridge(f, **options), f))
        assert_agree(ours, theirs, f.__name__, 1e-4)


def check_named_by_vmap(name: str, **options) -> None:
    f = CASES[name].f
    each = X.reshape(N, -1, 4)

    def gradients(h):
        def both(w):
            inside = jax.vmap(jax.value_and_grad(h, (0, 1)), (None, 0), axis_name="i")(w, each)
            around = jax.grad(lambda w: jnp.sum(jax.vmap(h, (None, 0), axis_name="i")(w, each)))(w)
            return inside, around

        return both

    ours, theirs = computed([gradients(pb.bridge(f, **options)), gradients(f)], [(W,)] * 2)
    assert_agree(ours, theirs, name, 1e-4)


def check_pmap(**options) -> None:
    def gradients(h):
        return jax.pmap(jax.value_and_grad(h), "i", in_axes=(None, 0))(W, X.reshape(N, -1, 4))

    assert_agree(gradients(pb.bridge(psum, **options)), gradients(psum), "pmap", 1e-4)


def check_two_axes(**options) -> None:
    """What is the same along one axis of a mesh and not along the other."""

    def f(w, x):
        y, z = lax.psum(jnp.sin(w), "b"), lax.pmean(jnp.tanh(x), "a")
        u = lax.psum(jnp.sum(z) * jnp.sum(w), "b") + lax.psum(jnp.sum(x[:, :1] * w), ("a", "b"))
        return jnp.sum(y) * jnp.sum(z) + u

    axes = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=axes)

    def gradients(h):
        split = jax.shard_map(h, mesh=mesh, in_specs=(P("b"), P("a")), out_specs=P())
        return jax.jit(jax.value_and_grad(split, (0, 1)))(W, X)

    assert_agree(gradients(pb.bridge(f, **options)), gradients(f), "two axes", 1e-4)


def check_types_of_results() -> None:
    """JAX goes on knowing which results are the same on all devices: otherwise it refuses `P()`."""

    def f(w, x):
        return jnp.sum(w**2), jnp.sum(w * x)[None], 3.0

    def split(h):
        mesh = jax.make_mesh((N,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        return jax.shard_map(h, mesh=mesh, in_specs=(P(), P("i")), out_specs=(P(), P("i"), P()))(W, X)

    assert_agree(split(pb.bridge(f)), split(f), "results")


def check_meshes_do_not_share_traces() -> None:
    g = pb.bridge(lambda x: lax.psum(jnp.sin(x), "i") * lax.axis_size("i"))
    for n in (2, 4):
        values = jnp.arange(1.0, 1 + n)
        found = jax.vmap(g, axis_name="i")(values)
        np.testing.assert_allclose(found, n * jnp.sum(jnp.sin(values)), rtol=1e-5)


POLICIES = {
    "nothing": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("activation"),
    "own": lambda prim, *_, **__: prim.name == "psum",
}


def kept(policy: str) -> tuple[list, list]:
    """What a checkpoint with collectives keeps for the way back, bridged and as it is; gradients agree."""

    def layer(w, y):
        y = checkpoint_name(jnp.tanh(y @ jnp.outer(w, w)), "activation")
        return jnp.sin(y) + lax.pmean(jnp.cos(y * w), "i")

    f = jax.checkpoint(lambda w, x: total(layer(w, layer(w, x))), policy=POLICIES[policy])
    g = pb.bridge(f)
    assert_agree(*(_reverse(mapped(h)) for h in (g, f)), policy, 1e-4)

    def residuals(h):
        named = jax.vmap(h, (None, 0), axis_name="i")
        found = saved_residuals(named, W, X.reshape(N, -1, 4))
        return sorted(a.shape for a, why in found if "argument" not in why and "constant" not in why)

    return residuals(g), residuals(f)


def native_calls() -> tuple[int, str]:
    """How many kernels of Julia's the gradient calls, and what XLA is asked to compute."""
    g = mapped(pb.bridge(in_scan, execute="julia"))
    text = jax.jit(jax.grad(g, (0, 1))).lower(W, X).as_text()
    return text.count("custom_call @pybridge"), text


def refusal(how: str) -> Exception:
    def f(w, x):
        return jnp.sum(lax.psum(jnp.sin(w * x), "i" if how == "trace" else "k"))

    if how == "trace":
        g = pb.trace(lambda x: mapped(f)(W, x))
    else:
        g = mapped(lambda w, x: pb.bridge(f)(w, x), types=False)
    try:
        g(X) if how == "trace" else g(W, X)
    except pb.PyBridgeError as e:
        return e
    raise AssertionError("it was not refused")


def _forward(f):
    return jax.jit(lambda w, x: jax.jvp(f, (w, x), (jnp.cos(w), jnp.sin(x))))(W, X)


def _reverse(f):
    return jax.jit(jax.value_and_grad(f, (0, 1)))(W, X)


def _batched_reverse(f):
    several = jnp.stack([X, -X, 2 * X])
    return jax.jit(jax.vmap(jax.value_and_grad(f, (0, 1)), (None, 0)))(W, several)


def _forward_over_reverse(f):
    def push(w, x):
        return jax.jvp(jax.grad(f, (0, 1)), (w, x), (jnp.cos(w), jnp.sin(x)))

    return jax.jit(push)(W, X)


DONE = {
    "forward": _forward,
    "reverse": _reverse,
    "vmap of grad": _batched_reverse,
    "forward over reverse": _forward_over_reverse,
}
