"""A jaxpr as a sequence of Programs and of equations that JAX binds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import TracingError, UnsupportedPrimitive
from ..frontend import keys
from ..frontend.adapter import (
    checkpoints,
    devices,
    effects,
    equation_parameters,
    jaxprs,
    next_objects,
    references,
)
from ..frontend.adapter.jaxprs import Var
from ..frontend.emission import to_jax
from ..ir.program import Program
from ..ir.types import SymDim, TensorType
from .deferred_errors import Check, Guard, with_errors_last
from .needs_jax import Where, is_unknown, reason_for_jax, refusal, varying_axes
from .planning import Loop, Node, plan

Run = Callable[[Program, Sequence[Any], Guard | None], Sequence[Any]]
"""(Program, arrays, the check of the Program's results, which its derivative has to pass) -> results."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Equations that run as one Program, whose results vary over the mesh axes `axes`.

    guard: for the derivative.
    """

    run: Run
    program: Program
    reads: tuple[Var, ...]
    writes: tuple[Var, ...]
    axes: frozenset
    guard: Guard | None = None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        arrays = [self._spread(jaxprs.with_weak_type(keys.raw(x), False)) for x in arrays]
        results = self.run(self.program, arrays, self.guard)
        return [self._spread(keys.restored(y, v.aval)) for y, v in zip(results, self.writes, strict=True)]

    def _spread(self, x: Any) -> Any:
        return devices.varying_over(x, self.axes)


@dataclass(frozen=True, eq=False)
class Bound:
    """An equation that JAX binds; its bodies, if any, are in segments."""

    eqn: Any
    reads: tuple[Var, ...]
    writes: tuple[Var, ...]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        values = dict(zip(self.reads, arrays, strict=True))
        results = jaxprs.bind(self.eqn, [_read(v, values) for v in self.eqn.invars])
        wanted = set(self.writes)
        return [y for y, v in zip(results, self.eqn.outvars, strict=True) if v in wanted]


@dataclass(frozen=True, eq=False)
class Partition:
    """A function of the values of `inputs`.

    check: of the last two outputs, which are no results.
    """

    inputs: tuple[Var, ...]
    constants: dict[Var, Any]
    steps: tuple[Segment | Bound, ...]
    outputs: tuple[Any, ...]
    check: Check | None = None

    @property
    def is_program(self) -> bool:
        """Whether it is one Program alone, or nothing."""
        return len(self.steps) <= 1 and all(isinstance(step, Segment) for step in self.steps)

    def __call__(self, *args) -> list[Any]:
        values = self.constants | dict(zip(self.inputs, args, strict=True))
        for step in self.steps:
            values.update(zip(step.writes, step([values[v] for v in step.reads]), strict=True))
        results = [_read(v, values) for v in self.outputs]
        if self.check is None:
            return results
        guarded = any(isinstance(step, Segment) and step.guard is not None for step in self.steps)
        return self.check.passed(results[-2:], results[:-2], by_tangents=not guarded)

    def checked(self, check: Check) -> Partition:
        """With the check of the last two outputs. One Program's derivative has it, too."""
        match self.steps:
            case (Segment() as segment,) if all(_is_among(v, segment.writes) for v in self.outputs[-2:]):
                guard = Guard(check, *(segment.writes.index(v) for v in self.outputs[-2:]))
                return replace(self, check=check, steps=(replace(segment, guard=guard),))
        return replace(self, check=check)


def partitioned(
    jaxpr,
    name: str,
    run: Run,
    run_short: Run,
    lowered: Callable[[Any, str], Program],
    report: Callable[[str], None] = lambda _: None,
    called_in_a_loop: bool = False,
    package_rules: bool = True,
) -> Partition:
    """A function of the constants and arguments of a jaxpr.

    run: (Program, arrays of its input types) -> results. run_short: the same, of short Programs among others
        and in loops that JAX binds.
    lowered: (jaxpr without constants, name) -> Program.
    report: takes for each equation that JAX binds a line with the reason.
    called_in_a_loop: the function is to be called in a loop that JAX binds.
    package_rules: as for `bridge`.
    """
    jaxpr, check = jaxprs.opened(jaxpr), None
    if not package_rules and not devices.in_named_axes():
        jaxpr, check = with_errors_last(jaxpr)
    # Users' derivative rules, too, speak where axes have names. Elsewhere they wait to be traced.
    rules = devices.in_named_axes()
    splitting = _Splitting(name, run, run_short, lowered, rules, called_in_a_loop, package_rules)
    try:
        is_whole = splitting.is_one_program(jaxpr)
        found = splitting.whole(jaxpr) if is_whole else splitting.partition(jaxpr)
    except (UnsupportedPrimitive, TracingError):
        # To try each equation takes as long as lowering them all once more.
        splitting = replace(splitting, tries=True, lines=[], count=itertools.count(1))
        found = splitting.partition(jaxpr)
    for line in splitting.lines:
        report(line)
    return found if check is None else found.checked(check)


@dataclass(frozen=True)
class _Splitting:
    """name, run, run_short, lowered, called_in_a_loop, package_rules: as for `partitioned`.

    rules: users' derivative rules count, too, for what JAX is to bind.
    tries: each equation alone is lowered first, and JAX binds those that are refused.
    in_jaxs_equation: it is about a body of an equation that JAX binds.
    lines: for each equation that JAX binds the reason. count: of the segments, which are named by it.
    """

    name: str
    run: Run
    run_short: Run
    lowered: Callable[[Any, str], Program]
    rules: bool
    called_in_a_loop: bool
    package_rules: bool
    tries: bool = False
    in_a_loop: bool = False
    in_jaxs_equation: bool = False
    lines: list[str] = field(default_factory=list)
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def _where(self) -> Where:
        return Where(self.rules, self.package_rules, self.in_a_loop)

    def is_one_program(self, jaxpr) -> bool:
        """Whether nothing is known against it."""
        if any(jaxprs.is_float0(v.aval) for v in jaxpr.outvars):
            return False
        axes = _axes(jaxpr.invars)
        return all(devices.varying(v.aval) == axes for v in jaxpr.outvars) and not any(
            reason_for_jax(eqn, self._where) for eqn in jaxpr.eqns
        )

    def whole(self, jaxpr) -> Partition:
        program, axes = self.lowered(jaxpr, self.name), _axes(jaxpr.invars)
        segment = Segment(
            self._engine_for(program, alone=True), program, tuple(jaxpr.invars), _fresh(jaxpr.outvars), axes
        )
        return Partition(segment.reads, {}, (segment,), segment.writes)

    def partition(
        self,
        jaxpr,
        consts: Sequence[Any] = (),
        policy: checkpoints.Policy | None = None,
        fixed: int | None = None,
    ) -> Partition:
        """policy: of the `jax.checkpoint` whose body it is.

        fixed: so many of the first inputs of a scan's body are the same in each trip.
        """
        jaxpr = jaxprs.without_dead_code(jaxprs.opened(references.discharged(jaxpr)))
        inputs = jaxpr.invars[len(consts) :]
        values = dict(zip(jaxpr.invars, consts, strict=False))
        eqns, outputs = _flat(jaxpr, values)
        if policy is not None:
            eqns, outputs = _marked(eqns, outputs, policy)
        used = {v for atoms in (outputs, *(eqn.invars for eqn in eqns)) for v in atoms if jaxprs.is_var(v)}
        nodes = [self._node(eqn, used, jaxpr) for eqn in eqns]
        groups = plan(nodes if fixed is None else _with_trips(nodes, inputs[fixed:]), outputs)
        last = {v: i for i, group in enumerate(groups) for node in group.nodes for v in node.reads}
        last |= {v: len(groups) for v in outputs if jaxprs.is_var(v)}
        steps: list[Segment | Bound] = []
        for i, group in enumerate(groups):
            if group.axes is None:
                steps.append(self._bound(*group.nodes))
            else:
                needed = {v for v, reader in last.items() if reader > i}
                alone = len(groups) == 1 and not self.in_jaxs_equation
                steps.append(self._segment(jaxpr, group.nodes, group.axes, needed, alone))
        return Partition(tuple(inputs), values, tuple(steps), tuple(outputs))

    def _node(self, eqn, used: set[Var], like) -> Node:
        """like: the jaxpr that the equation is from."""
        reads = tuple(dict.fromkeys(v for v in eqn.invars if jaxprs.is_var(v)))
        writes = tuple(v for v in eqn.outvars if v in used)
        reason = None if checkpoints.is_mark(eqn) else self._reason(eqn, reads, like)
        if reason is not None:
            self.lines.append(f"JAX binds {eqn.primitive}: {reason}")
        foreign = reason is not None or checkpoints.is_mark(eqn)
        axes = None if foreign else varying_axes(eqn, used)
        return Node(eqn, reads, writes, axes or frozenset(), axes is None, effects.has_effect(eqn))

    def _reason(self, eqn, reads: tuple[Var, ...], like) -> str | None:
        """Why JAX is to bind the equation, if it is."""
        reason = reason_for_jax(eqn, self._where)
        if reason is not None or not self.tries:
            return reason
        return refusal(self.lowered, jaxprs.jaxpr_of([eqn], reads, eqn.outvars, like))

    def _segment(
        self, jaxpr, nodes: Sequence[Node], axes: frozenset, needed: set[Var], alone: bool
    ) -> Segment:
        """A group of equations of the jaxpr.

        needed: what later segments and JAX's equations read. alone: it is all of the function.
        """
        eqns = [node.eqn for node in nodes]
        made = {v for node in nodes for v in node.writes}
        reads = tuple(dict.fromkeys(v for node in nodes for v in node.reads if v not in made))
        writes = tuple(v for node in nodes for v in node.writes if v in needed)
        name = f"{self.name}_{next(self.count)}"
        program = self.lowered(jaxprs.jaxpr_of(eqns, reads, writes, jaxpr), name)
        run = self._engine_for(program, alone) if program.equations else _emitted
        return Segment(run, program, reads, writes, axes - {Loop.TRIPS})

    def _engine_for(self, program: Program, alone: bool) -> Run:
        """A call of a kernel counts in a loop, and where it is there for a part of the work."""
        in_a_loop = self.in_a_loop or self.called_in_a_loop
        return self.run_short if (in_a_loop or not alone) and is_short(program) else self.run

    def _bound(self, node: Node) -> Bound:
        primitive = node.eqn.primitive
        of_elements = primitive.name in equation_parameters.OF_ELEMENTS
        if of_elements or is_unknown(primitive) or next_objects.is_high(node.eqn):
            # Whatever its parameters are is for itself.
            return Bound(node.eqn, node.reads, node.writes)
        eqn = checkpoints.by_marks(node.eqn)
        policy = node.eqn.params["policy"] if eqn is not node.eqn else None

        in_a_loop = self.in_a_loop or eqn.primitive.name in equation_parameters.LOOPS
        inner = replace(self, in_a_loop=in_a_loop, in_jaxs_equation=True)
        # JAX differentiates a `while` in no way that keeps anything.
        fixed = equation_parameters.scan(eqn).consts if eqn.primitive.name == "scan" else None

        def rebuilt(jaxpr, consts: Sequence[Any]) -> Any:
            inside = inner.partition(jaxpr, consts, policy, fixed)
            return jaxprs.traced(inside, [v.aval for v in inside.inputs])

        with devices.inside(eqn):
            return Bound(jaxprs.with_bodies(eqn, rebuilt), node.reads, node.writes)


SHORT = 1 << 12
"""So many elements are computed in about the time that XLA needs to call a native kernel."""


def is_short(program: Program) -> bool:
    """Whether a call takes longer than what the Program computes."""
    return _elements(program) <= SHORT


def _elements(program: Program) -> float:
    """How many elements its equations compute; without end where that is not known before it runs."""
    bodies = (body for eq in program.equations for body in eq.running_bodies)
    sizes = [_size(v.type) for eq in program.equations for v in eq.outputs]
    if math.inf in sizes or any(eq.op in _OF_UNKNOWN_LENGTH for eq in program.equations):
        return math.inf
    return sum(sizes) + sum(map(_elements, bodies))


def _size(type_: TensorType) -> float:
    known = [n for n in type_.shape if not isinstance(n, SymDim)]
    return math.prod(known) if len(known) == type_.rank else math.inf


_OF_UNKNOWN_LENGTH = ("scan", "while", "custom_linear_solve")


def _emitted(program: Program, arrays: Sequence[Any], guard: Guard | None) -> Sequence[Any]:
    """A Program that computes nothing needs no engine."""
    return to_jax(program)(*arrays)


def _flat(jaxpr, values: dict[Var, Any]) -> tuple[list[Any], list[Any]]:
    """The equations, with those of calls in the place of the calls, and the outputs.

    Constants of these calls are added to `values`.
    """
    names: dict[Var, Any] = {}
    eqns: list[Any] = []

    def renamed(atoms) -> list[Any]:
        return [names.get(v, v) if jaxprs.is_var(v) else v for v in atoms]

    def walk(body) -> None:
        for eqn in map(next_objects.counterpart, body.eqns):
            given = renamed(eqn.invars)
            if eqn.primitive.name in equation_parameters.CALLS:
                called = equation_parameters.called(eqn)
                values.update(jaxprs.constants(called))
                names.update(zip(jaxprs.inputs(called), given, strict=True))
                walk(called)
                names.update(zip(eqn.outvars, renamed(jaxprs.outputs(called)), strict=True))
            else:
                # A body that is called twice needs variables of its own each time.
                own = [Var(v.aval) for v in eqn.outvars]
                names.update(zip(eqn.outvars, own, strict=True))
                eqns.append(eqn.replace(invars=given, outvars=own))

    walk(jaxpr)
    return eqns, renamed(jaxpr.outvars)


def _marked(
    eqns: Sequence[Any], outputs: Sequence[Any], policy: checkpoints.Policy
) -> tuple[list[Any], list[Any]]:
    """The same, with a mark behind each equation whose results the policy allows to keep.

    JAX sees the marks, and not what is in Programs.
    """
    names: dict[Var, Var] = {}
    marked: list[Any] = []
    for eqn in eqns:
        marked.append(eqn.replace(invars=[names.get(v, v) if jaxprs.is_var(v) else v for v in eqn.invars]))
        if eqn.primitive.name not in devices.COLLECTIVES and checkpoints.is_saveable(policy, eqn):
            for v in eqn.outvars:
                names[v] = Var(v.aval)
                marked.append(checkpoints.mark(v, names[v]))
    return marked, [names.get(v, v) if jaxprs.is_var(v) else v for v in outputs]


def _axes(variables) -> frozenset:
    """The mesh axes over which any of them varies."""
    return frozenset().union(*(devices.varying(v.aval) for v in variables))


def _with_trips(nodes: Sequence[Node], varying: Sequence[Var]) -> list[Node]:
    """The nodes, with those whose results may differ from trip to trip, as the variables `varying` do."""
    differing, marked = set(varying), []
    for node in nodes:
        if node.effect or not differing.isdisjoint(node.reads):
            differing.update(node.writes)
            node = replace(node, axes=node.axes | {Loop.TRIPS})
        marked.append(node)
    return marked


def _is_among(atom: Any, variables: Sequence[Var]) -> bool:
    return jaxprs.is_var(atom) and atom in variables


def _fresh(atoms) -> tuple[Var, ...]:
    return tuple(Var(v.aval) for v in atoms)


def _read(atom, values: dict[Var, Any]) -> Any:
    return values[atom] if jaxprs.is_var(atom) else atom.val
