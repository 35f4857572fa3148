"""The parameters of equations with nested jaxprs, in one form for every version of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import checkpoints, definitions, devices, internals


@dataclass(frozen=True)
class Scan:
    """The operands are `consts` constants, `carry` initial values of what is carried, and arrays whose
    leading axis the loop goes along. body: (constants, carried, elements) -> (carried, elements)."""

    length: Any
    reverse: bool
    unroll: int
    consts: int
    carry: int
    body: Any


def scan(eqn: Any) -> Scan:
    params = eqn.params
    if "ft_in" in params:  # since 0.11: a tree of constants, carried values and elements
        constants, carried, _ = params["ft_in"].unpack()
        consts, carry = len(constants), len(carried)
    else:
        consts, carry = params["num_consts"], params["num_carry"]
    reverse, unroll = bool(params["reverse"]), int(params["unroll"])
    return Scan(params["length"], reverse, unroll, int(consts), int(carry), params["jaxpr"])


@dataclass(frozen=True)
class While:
    """The operands are the constants of the condition, those of the body, and what is carried."""

    cond_consts: int
    body_consts: int
    cond: Any
    body: Any


def while_loop(eqn: Any) -> While:
    params = eqn.params
    return While(
        int(params["cond_nconsts"]), int(params["body_nconsts"]), params["cond_jaxpr"], params["body_jaxpr"]
    )


@dataclass(frozen=True)
class Cond:
    """The first operand is the index of the branch, the others are the branches' operands.

    platforms: of a `lax.platform_dependent`, for each branch the platforms, or None for all others.
    """

    branches: tuple[Any, ...]
    platforms: tuple[Any, ...] | None

    def of_platforms(self) -> set[int | None]:
        """Of a `lax.platform_dependent`, the branches for what is being traced for; None if one has none."""
        assert self.platforms is not None
        every = list(enumerate(self.platforms))
        return {
            next((i for i, names in every if devices.is_for(target, names)), None)
            for target in devices.targets()
        }


def cond(eqn: Any) -> Cond:
    return Cond(eqn.params["branches"], eqn.params.get("branches_platforms"))


def differs_by_platform(eqn: Any) -> bool:
    """Whether what it does is not the same on all the platforms that it is traced for."""
    if eqn.primitive.name == "platform_index":
        return len(set(devices.targets())) > 1
    if eqn.primitive.name != "cond":
        return False
    conditional = cond(eqn)
    return conditional.platforms is not None and len(conditional.of_platforms()) > 1


@dataclass(frozen=True)
class Remat:
    """A `jax.checkpoint`. barrier: XLA must not merge the recomputation with what it recomputes."""

    body: Any
    policy: checkpoints.Policy | None
    barrier: bool


def remat(eqn: Any) -> Remat:
    prevent_cse = eqn.params["prevent_cse"]
    barrier = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)
    return Remat(eqn.params["jaxpr"], eqn.params["policy"], barrier)


CALLS = frozenset(
    {"jit", "pjit", "composite", "eval_jaxpr", "closed_call", "core_call", "call", "core_closed_call"}
    | {"remat_opt", "program_order", "run_state"}
)
"""The primitives that do what their jaxpr does."""

LOOPS = frozenset({"scan", "while"})

OF_ELEMENTS = frozenset(
    {"reduce", "reduce_window", "select_and_scatter", "scatter", "scatter-add", "scatter_add"}
    | {"scatter_sub", "scatter_mul", "scatter_min", "scatter_max"}
)
"""The primitives whose jaxprs are of two elements: XLA ends the process where these call native code."""

_CALLED = ("jaxpr", "call_jaxpr", "call", "fwd_jaxpr")


def called(eqn: Any) -> Any:
    """The jaxpr that one of `CALLS` calls."""
    if eqn.primitive is internals.run_state_p:  # its jaxpr takes references, which JAX makes values
        return definitions.definition(eqn)
    return next(eqn.params[name] for name in _CALLED if name in eqn.params)


@dataclass(frozen=True)
class LinearCall:
    """The operands are `residuals` known ones, the first `consts` of which the call closes over, and those in
    which the call is linear.

    transpose: (constants, residuals but for `consts`, cotangents) -> cotangents, with the values of those
    constants.
    """

    consts: int
    residuals: int
    call: Any
    transpose: Any
    transpose_consts: Sequence[Any]


def linear_call(eqn: Any) -> LinearCall:
    """Of JAX's own primitive, or of `linear_map`."""
    params = eqn.params
    if "callee" not in params:
        return LinearCall(0, params["residuals"], params["call"], params["transpose"], [])
    consts = int(params["num_callee_consts"])
    transpose, transpose_consts = params["transpose_thunk"]()
    return LinearCall(
        consts, consts + int(params["num_res"]), params["callee"], transpose, list(transpose_consts)
    )


@dataclass(frozen=True)
class LinearSolve:
    """A custom_linear_solve: its functions by name (None for one that there is not), and for each the number
    of leading operands that it closes over."""

    functions: dict[str, Any]
    consts: dict[str, int]


SOLVE_FUNCTIONS = ("matvec", "vecmat", "solve", "transpose_solve")


def linear_solve(eqn: Any) -> LinearSolve:
    jaxprs, lengths = eqn.params["jaxprs"], eqn.params["const_lengths"]
    return LinearSolve(
        {name: getattr(jaxprs, name) for name in SOLVE_FUNCTIONS},
        {name: int(getattr(lengths, name)) for name in SOLVE_FUNCTIONS},
    )
