"""The JAX primitives `julia_call`, a Program applied to arrays, and `julia_jvp`, the same with tangents.

Their JVP, transpose and batching rules ask Julia (through `transforms`) for the derivative Program and bind
that in turn, so every nesting of JAX's transformations ends in Programs made by Julia. Lowering decides how
each runs: as a native kernel of Julia's (`native`), or re-emitted as lax operations.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jax.interpreters import ad, batching, mlir

from ..errors import EngineUnavailable, NotDifferentiable
from ..frontend.adapter import checks, devices, eager, jaxprs, jets, partial_evaluation
from ..frontend.adapter.extend import Primitive
from ..frontend.adapter.gradients import in_batches
from ..frontend.dimensions import Dimensions, Sizes
from ..frontend.emission import RunRule, to_jax
from ..ir.cost_model import reason_for_xla
from ..ir.dead_code import is_symbolic, needed_inputs, restricted
from ..ir.deferred import NoProgram, remembered, values
from ..ir.numerals import DTYPES
from ..ir.program import Program
from ..ir.while_bounds import relies_on_bounds
from ..ir.zeros import zero_results
from . import native, transforms
from .batches import batched, batched_by_jax
from .dead_code_rules import of_call, of_joint_call
from .gradient_products import gradient_product
from .items import Items
from .placement import BY_XLA, probably_native
from .reporting import report
from .tangents import Halves, Split, gradient_of_multiple, joint, split

julia_call_p = Primitive("julia_call")
julia_call_p.multiple_results = True


class Guard(Protocol):
    """A check of a Program's results. Hashed and compared by content."""

    def __call__(self, results: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """The arrays, which pass the check of the results."""

    def kept(self, used: Sequence[bool]) -> Guard | None:
        """The check of those results that are used; None if it needs others."""


def call(
    program: Program,
    *args,
    execute: str = "xla",
    explain: bool = False,
    sizes: Sizes = (),
    residuals: int = 0,
    guard: Guard | None = None,
    items: Items | None = None,
) -> list[Any]:
    """The Program's results for arrays of exactly its input types.

    execute: "xla", "julia" or "auto"; "portable" is "xla" without calls of a platform's library.
    explain: say on stderr which of the two it was, and why, whenever that is decided.
    sizes: of symbolic dimensions, where they do not follow from the shapes of the arguments.
    residuals: how many of the last results only other Programs read.
    guard: what a derivative that is computed with the results passes.
    items: what the Program is a batch of, where the derivatives of the items may be computed with it.
    """
    program = program.with_structure(None)  # the rules below leave inputs and outputs away
    how = {"execute": execute, "explain": explain, "sizes": sizes, "residuals": residuals}
    return julia_call_p.bind(*args, program=program, guard=guard, items=items, **how)


# Running


@julia_call_p.def_impl
def _impl(*args, program, sizes, **how):
    program = values(program)

    def in_steps(*xs):
        return to_jax(program, sizes=sizes)(*xs)

    return eager.run(julia_call_p, args, program.name, in_steps, program=program, sizes=sizes, **how)


@julia_call_p.def_abstract_eval
def _abstract_eval(*avals, program, sizes, **how):
    dims = Dimensions(program.input_types, [a.shape for a in avals], sizes)
    return [devices.result_aval(dims.shape(t), DTYPES[t.dtype], avals) for t in program.output_types]


_CHOSEN = 'execute="xla", or a short Program in a loop or among others'

_as_xla = mlir.lower_fun(lambda *args, program, **how: to_jax(program, **how)(*args), multiple_results=True)


def _on_cpu(ctx, *operands, program, execute, explain, sizes, residuals=0, guard=None, items=None):
    program = values(program)
    reason = _against_native(ctx, program, execute)
    if reason is not None:
        how = {"execute": execute if execute in BY_XLA else "xla", "explain": explain, "sizes": sizes}
        return _elsewhere(ctx, *operands, program=program, reason=reason, **how)
    made = native.kernel(program)
    _tell(program, f"native kernel {made.target}, {made.workspace} bytes of workspace", explain)
    return native.lower(ctx, program, operands)


def _elsewhere(ctx, *operands, program, execute, explain, sizes, reason=None, **of_derivatives):
    if execute == "julia" and not devices.is_export(ctx):
        raise EngineUnavailable(
            f'{program.name} is to run with execute="julia", and native kernels run on the CPU alone; '
            'for other platforms use execute="auto" or "xla"'
        )
    reason = reason or (_CHOSEN if execute in BY_XLA else "native kernels run on the CPU alone")
    _tell(program, f"XLA operations: {reason}", explain)
    return _as_xla(ctx, *operands, program=values(program), portable=execute == "portable", sizes=sizes)


def _against_native(ctx, program: Program, execute: str) -> str | None:
    """Why the Program does not run natively, if it does not.

    XLA replicates the operands of a foreign call over all devices, while it can split operations.
    """
    if execute in BY_XLA:
        return _CHOSEN
    if devices.is_export(ctx):
        return "exports hold no native kernels"
    if execute == "auto" and devices.partitions(ctx) > 1:
        return f"XLA splits it over {devices.partitions(ctx)} devices"
    if execute != "auto":
        return None
    refusal = reason_for_xla(program) or native.refusal(program)
    return None if refusal is None else str(refusal)


def _tell(program: Program, what: str, explain: bool) -> None:
    report(f"{program.name} runs as {what}", explain)


mlir.register_lowering(julia_call_p, _elsewhere)
mlir.register_lowering(julia_call_p, _on_cpu, platform="cpu")


# Differentiation


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    program,
    execute,
    explain,
    sizes,
    residuals=0,
    guard=None,
    items=None,
):
    active = tuple(i for i, t in enumerate(tangents) if not jaxprs.is_zero(t))
    given = [tangents[i] for i in active]
    sizes = _sizes(program, primals, sizes)
    how = {"execute": execute, "explain": explain, "sizes": sizes, "guard": guard}
    try:
        if _is_reverse(given) and execute not in BY_XLA:
            found = _by_gradient(items or Items(program), active, primals, given, how)
            if found is not None:
                return found
        # Two kernels share no computation; XLA finds by itself what its operations have in common.
        cut = split(program, active, execute not in BY_XLA)
        both = None if _is_reverse(given) or not jaxprs.runs_once() else joint(program, active, cut)
        args = (*primals, *given)
        results = (
            _in_halves(program, cut, args, how, residuals) if both is None else _jointly(*both, args, how)
        )
    except NoProgram as e:
        _tell(program, f"XLA operations, differentiated by JAX: {e}", explain)
        run_rule = None if execute in BY_XLA else functools.partial(_rule, execute, explain)
        ys, dots = jvp_by_jax(program, active, primals, tangents, sizes, run_rule)
        return ys, _guarded(guard, ys, dots)
    ys, rest = results[: len(program.outputs)], iter(results[len(program.outputs) :])
    flags = zip(cut.has_tangent, ys, strict=True)
    dots = [next(rest) if has else jaxprs.no_tangent(y) for has, y in flags]
    return ys, _guarded(guard, ys, dots)


def _guarded(guard: Guard | None, ys: Sequence[Any], arrays: Sequence[Any]) -> Sequence[Any]:
    """What is computed with the results, which passes their check if there is one."""
    return arrays if guard is None else guard(ys, arrays)


def _by_gradient(items: Items, active: tuple[int, ...], primals, tangents, how):
    """Of a real scalar, or of one for each item of a batch, whose gradient is all that is kept.

    None where there is no gradient, or two passes cost less.
    """
    program, xs = items.program, list(primals[items.hoisted :])
    found = items.one_pass(active, xs)
    if found is None:
        return None
    whole, places = found
    results = in_batches(lambda xs, _: _derived(whole, *xs, **how), items.levels)(xs, ())
    ys, gradients = _apart(program, results, how["guard"])
    (place,) = (i for i, t in enumerate(program.output_types) if t.inexact)
    nonzero = [not zero for zero in zero_results(whole)[len(program.outputs) :]]
    dots = [jaxprs.no_tangent(y) for y in ys]
    if any(nonzero):
        tangents = [items.spread(i, xs, t) for i, t in zip(places, tangents, strict=True)]
        used = [list(itertools.compress(arrays, nonzero)) for arrays in (gradients, tangents)]
        number = _Number(program, places, tuple(nonzero), place, tuple(how.items()))
        dots[place] = gradient_product(number, used[0], xs, used[1], items.levels)
    return ys, dots


def _apart(
    program: Program, results: Sequence[Any], guard: Guard | None
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The Program's results, and those of its derivative that were computed with them."""
    ys, rest = results[: len(program.outputs)], results[len(program.outputs) :]
    return ys, _guarded(guard, ys, rest)


@dataclass(frozen=True)
class _Number:
    """The inexact result of a Program, at `place`, to be differentiated by its inputs at `given`.

    given: which inputs have tangents. A user's rule may ask that of one input for the derivative by another.
    nonzero: by which of them the derivative is not zero.
    """

    program: Program
    given: tuple[int, ...]
    nonzero: tuple[bool, ...]
    place: int
    how: tuple[tuple[str, Any], ...]

    @property
    def active(self) -> tuple[int, ...]:
        return tuple(itertools.compress(self.given, self.nonzero))

    @property
    def dtype(self) -> Any:
        return DTYPES[self.program.output_types[self.place].dtype]

    def along(self, xs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        def number(*args: Any) -> Any:
            return call(self.program, *args, **dict(self.how))[self.place]

        primals, rest = [xs[i] for i in self.given], iter(tangents)
        places = zip(primals, self.nonzero, strict=True)
        dots = [next(rest) if has else jnp.zeros_like(x) for x, has in places]
        return jax.jvp(jaxprs.at_places(number, self.given, xs), primals, dots)[1]

    def of_multiple(self, xs: Sequence[Any], c: Any) -> Sequence[Any]:
        made = gradient_of_multiple(self.program, self.given)
        assert made is not None  # since it has a gradient
        how = dict(self.how)
        _, gradients = _apart(self.program, _derived(made, *xs, c, **how), how["guard"])
        return list(itertools.compress(gradients, self.nonzero))


def _is_reverse(tangents: Sequence[Any]) -> bool:
    """Whether JAX linearizes: primals are there, and tangents are not."""
    return any(map(partial_evaluation.is_unknown, tangents))


def _in_halves(program: Program, cut: Split, args, how, residuals: int) -> list[Any]:
    """Also in a loop: where each trip has other tangents at the same primals, XLA computes these once.

    residuals: how many of the Program's own last results are such; those for its derivative follow them.
    """
    primals, tangents = args[: len(program.inputs)], args[len(program.inputs) :]
    results = len(program.outputs) - residuals
    known = _derived(cut.known, *primals, residuals=len(cut.known.outputs) - results, **how)
    kept = map([*primals, *known].__getitem__, cut.residuals)
    how = {**how, "guard": None}
    dots = _derived(cut.linear, *kept, *tangents, **how) if any(cut.has_tangent) else []
    return [*known[: len(program.outputs)], *dots]


def _jointly(both: Program, halves: Halves, args, how) -> list[Any]:
    results = julia_jvp_p.bind(*args, program=both, halves=halves, **how)
    _check_bounds(both, args, results, how["execute"], how["sizes"])
    return results


def _sizes(program: Program, args: Sequence[Any], known: Sizes) -> Sizes:
    """Of symbolic dimensions, for Programs whose own inputs may not have them."""
    if not is_symbolic(program):
        return ()
    shapes = [x.aval.shape if ad.is_undefined_primal(x) else np.shape(x) for x in args]
    return Dimensions(program.input_types, shapes, known).variables


def _derived(program: Program, *args, **how) -> list[Any]:
    """`call` of a derivative."""
    results = call(program, *args, **how)
    _check_bounds(program, args, results, how["execute"], how["sizes"])
    return results


def _check_bounds(program: Program, args, results, execute: str, sizes: Sizes) -> None:
    """Raises NotDifferentiable where a loop ran longer than its bound, if the values are there to see it."""
    if (
        jaxprs.any_tracer((*args, *results))
        or not relies_on_bounds(program)
        or not any(jnp.isnan(y).any() for y in results if jaxprs.is_inexact(y))
        or (execute not in BY_XLA and devices.on_cpu(results) and native.refusal(program) is None)
    ):
        return
    broken, _ = jax.jit(checkify.checkify(to_jax(program, sizes=sizes)))(*args)
    if broken.get() is not None:
        raise NotDifferentiable(
            f"a while loop of {program.name} runs longer than its while_bound: its derivatives would be "
            'NaN, and are under jit. Give a larger while_bound, or execute="julia", which needs none'
        )


def jvp_by_jax(
    program: Program,
    active: tuple[int, ...],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    sizes: Sizes = (),
    run_rule: RunRule | None = None,
):
    """The JVP rule of a Program's call by JAX, which runs rules that no Program can hold.

    run_rule: runs the parts of users' rules that are Programs, as a `custom_vjp`'s forward rule may be.
    """
    of_active = jaxprs.at_places(to_jax(program, sizes=sizes, run_rule=run_rule), active, primals)
    ys, dots = jax.jvp(of_active, [primals[i] for i in active], [tangents[i] for i in active])
    return list(ys), [jaxprs.no_tangent(y) if jaxprs.is_zero(t) else t for y, t in zip(ys, dots, strict=True)]


def _rule(execute: str, explain: bool, program: Program, args: Sequence[Any]) -> Sequence[Any]:
    return call(replace(program, name=program.name or "rule"), *args, execute=execute, explain=explain)


ad.primitive_jvps[julia_call_p] = _jvp


def _transpose(cotangents: Sequence[Any], *args, program, sizes, residuals=0, items=None, **how):
    linear = [i for i, x in enumerate(args) if ad.is_undefined_primal(x)]
    if not all(program.input_types[i].inexact for i in linear):
        raise NotDifferentiable(f"{program.name} cannot be transposed in integer inputs")
    given = [i for i, ct in enumerate(cotangents) if not jaxprs.is_zero(ct)]
    try:
        backward = transforms.transpose(program, linear, given, optimize=True)
    except NoProgram:
        return _transposed_by_jax(program, given, cotangents, args, sizes)
    sizes = _sizes(program, args, sizes)
    fixed = [x for x in args if not ad.is_undefined_primal(x)]
    backward, nonzero = _nonzero(backward)
    results = iter(_derived(backward, *fixed, *(cotangents[i] for i in given), sizes=sizes, **how))
    found = _or_zeros(results, nonzero, [args[i].aval for i in linear])
    return [next(found) if ad.is_undefined_primal(x) else None for x in args]


@remembered(maxsize=1024)
def _nonzero(program: Program) -> tuple[Program, tuple[bool, ...]]:
    """The Program without results that are zero whatever the inputs are, and which are the others."""
    nonzero = tuple(not zero for zero in zero_results(program))
    return (program if all(nonzero) else restricted(program, nonzero)), nonzero


def _or_zeros(results: Iterator[Any], nonzero: Sequence[bool], avals: Sequence[Any]) -> Iterator[Any]:
    """The cotangents of values of these types; those that are zero are so by their type.

    That of what nothing depends on must not be an array of zeros: the rules of others ask for it, and under
    `vmap` JAX refuses arrays for results of a custom_vjp function that are the same for the whole batch.
    """
    for has, aval in zip(nonzero, avals, strict=True):
        yield devices.varying_like(next(results), aval) if has else jaxprs.no_cotangent(aval)


def _transposed_by_jax(
    program: Program, given: list[int], cotangents: Sequence[Any], args: Sequence[Any], sizes: Sizes
):
    def of_linear(*moved):
        rest = iter(moved)
        ys = to_jax(program, sizes=sizes)(*(next(rest) if ad.is_undefined_primal(x) else x for x in args))
        return [ys[i] for i in given]

    avals = [x.aval for x in args if ad.is_undefined_primal(x)]
    needed = needed_inputs(restricted(program, [i in given for i in range(len(program.outputs))]))
    nonzero = [has for has, x in zip(needed, args, strict=True) if ad.is_undefined_primal(x)]
    results = jax.linear_transpose(of_linear, *avals)([cotangents[i] for i in given])
    found = _or_zeros(itertools.compress(results, nonzero), nonzero, avals)
    return [next(found) if ad.is_undefined_primal(x) else None for x in args]


ad.primitive_transposes[julia_call_p] = _transpose


# Forward mode is a `julia_call` that JAX may still cut in halves, when a jaxpr that has it is differentiated
# in reverse.

julia_jvp_p = Primitive("julia_jvp")
julia_jvp_p.multiple_results = True


def _as_call(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of `julia_call` for `julia_jvp`."""
    return lambda *args, halves, **params: rule(*args, **params)


def _halves(unknown: Sequence[bool], params: Mapping[str, Any]) -> partial_evaluation.Halves | None:
    how = {**params, "guard": None}  # its tangents have passed it
    of: Halves = how.pop("halves")
    inputs = len(of.known.inputs)
    if any(unknown[:inputs]) or not any(unknown):
        return None
    known = len(of.known.outputs)
    residuals = known - sum(place < known for place in of.results)
    first, second = {**how, "program": of.known, "residuals": residuals}, {**how, "program": of.linear}
    return partial_evaluation.Halves(julia_call_p, inputs, first, second, of.residuals, of.results)


julia_jvp_p.def_impl(_as_call(_impl))
julia_jvp_p.def_abstract_eval(_as_call(_abstract_eval))
mlir.register_lowering(julia_jvp_p, _as_call(_elsewhere))
mlir.register_lowering(julia_jvp_p, _as_call(_on_cpu), platform="cpu")
ad.primitive_jvps[julia_jvp_p] = _as_call(_jvp)
partial_evaluation.register(julia_jvp_p, _halves)


jaxprs.register_dead_code_rule(julia_call_p, of_call)
jaxprs.register_dead_code_rule(julia_jvp_p, of_joint_call)
for _p in (julia_call_p, julia_jvp_p):
    checks.register(_p, lambda program, sizes, **_: to_jax(program, sizes=sizes))
    jets.register(_p, lambda program, sizes, **_: to_jax(program, sizes=sizes))


# Batching: the Program is re-emitted, batched by JAX, and lowered again.


def _batch(args: Sequence[Any], dims: Sequence[Any], *, program, sizes, residuals=0, items=None, **how):
    try:
        whole = batched(program, args, dims, sizes, residuals, probably_native(how["execute"]))
    except NoProgram as e:
        _tell(program, f"XLA operations, batched by JAX: {e}", how["explain"])
        ys = batched_by_jax(program, args, dims, sizes)
        return ys, [0] * len(ys)
    plain = not sizes and not residuals and how["guard"] is None
    items = (items or Items(program)).in_batch(dims, whole) if plain else None
    results = call(whole.program, *whole.hoisted, *args, sizes=sizes, residuals=residuals, items=items, **how)
    return results, whole.dims


def _batch_in_halves(args: Sequence[Any], dims: Sequence[Any], *, program, halves, **how):
    """Where tangents alone have a batch axis, as those of Jacobians, the known half has none."""
    how["guard"] = None  # the tangents have passed it

    def apply(half: Program, given: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        xs, axes = [x for x, _ in given], [axis for _, axis in given]
        if all(axis is None for axis in axes):
            return [(y, None) for y in call(half, *xs, **how)]
        return list(zip(*_batch(xs, axes, program=half, **how), strict=True))

    found = halves.run(apply, list(zip(args, dims, strict=True)))
    return [y for y, _ in found], [axis for _, axis in found]


batching.primitive_batchers[julia_call_p] = _batch
batching.primitive_batchers[julia_jvp_p] = _batch_in_halves
