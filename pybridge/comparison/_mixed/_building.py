"""From a Program and what sweeps back have found to the graph of its values."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir.numerals import INTEGERS
from ...ir.program import Equation, Program
from ...ir.types import Atom, Literal, Var
from .._blame._sweep import Charges
from ._cost import cast_cost, saving
from ._graph import Flow, Graph, Site
from ._narrowing import WIDE_ONLY
from ._weights import NARROW, NARROWED, OPERANDS, OWN, REACH
from ._wiring import Path, Wire, wires

# A small error of the operand makes a large one of the result, or none.
_STEPS = frozenset({"floor", "ceil", "round", "rem", "nextafter", "bitcast_convert_type"})

ARGUMENT = "it is an argument"
UNKNOWN = "its error is not known"
NOT_RUN = "it did not run"
DECIDES = "it decides"
STOPS = "it ends a loop"
NOT_FINITE = "float32 has no such numbers, or its adjoint is not finite"


def graph_of(
    program: Program, probes: Sequence[Charges], allowed: np.ndarray, uncovered: Container[str]
) -> Graph:
    """probes: what a sweep back from each element looked at has charged; allowed: the error it may have.

    uncovered: operations whose errors no sweep knows.
    """
    build = _Build(allowed, uncovered)
    for var in program.inputs:
        build.pin(build.add((), var), ARGUMENT)
    build.program(program, probes, 1.0, (), ())
    for atom in program.outputs:
        if isinstance(atom, Var):
            build.edge(build.place[(), atom.id], build.sink, build.nothing, cast_cost(atom.type, 1.0))
    return build.graph()


class _Build:
    """Nodes that turn out to have one precision are united; the graph is made of their roots."""

    def __init__(self, allowed: np.ndarray, uncovered: Container[str]):
        self.allowed, self.uncovered = allowed, uncovered
        self.nothing = np.zeros(len(allowed))
        self.place: dict[tuple[Path, int], int] = {}
        self.bounds = self.nothing
        self._parents: list[int] = []
        self._paths: list[Path] = []
        self._wide: list[bool] = []
        self._own: list[np.ndarray] = []
        self._reach: list[float] = []
        self._gain: list[float] = []
        self._pins: dict[int, str] = {}
        self._edges: list[tuple[int, int, np.ndarray, float]] = []
        self._sites: list[Site] = []
        self._steps: list[int] = []
        self._predicates: list[tuple[int, Path, int]] = []
        self.sink = self._node((), False)

    # Nodes and edges

    def _node(self, path: Path, wide: bool) -> int:
        self._parents.append(len(self._parents))
        self._paths.append(path)
        self._wide.append(wide)
        self._own.append(self.nothing)
        self._reach.append(0.0)
        self._gain.append(0.0)
        return len(self._parents) - 1

    def add(self, path: Path, var: Var) -> int:
        node = self.place[path, var.id] = self._node(path, var.type.dtype in NARROW)
        return node

    def pin(self, node: int, reason: str) -> None:
        self._pins.setdefault(node, reason)

    def edge(self, source: int, target: int, weight: np.ndarray, cast: float) -> None:
        self._edges.append((source, target, weight, cast if self._wide[source] else 0.0))

    def _unite(self, nodes: Sequence[int]) -> None:
        roots = sorted({self._root(n) for n in nodes if self._wide[n]})
        for other in roots[1:]:
            self._parents[other] = roots[0]

    def _root(self, node: int) -> int:
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node

    def _flow(self, atom: Atom, path: Path, target: int, weight: np.ndarray, cast: float) -> None:
        """A value goes into a node; a number's rounding is the node's own error."""
        if isinstance(atom, Literal):
            self._own[target] = self._own[target] + weight
        else:
            self.edge(self.place[path, atom.id], target, weight, cast if self._wide[target] else 0.0)

    # Programs

    def program(
        self, program: Program, charges: Sequence[Charges | None], runs: float, path: Path, place: Any
    ) -> None:
        """Its inputs have nodes already. charges: by probe. runs: how often it ran, 0 where none looked."""
        for k, eq in enumerate(program.equations):
            nodes = [self.add(path, v) for v in eq.outputs]
            of_eq = [None if c is None else c[k] for c in charges]
            inner = wires(eq)
            if inner:
                self._nested(eq, k, inner, of_eq, runs, path, place)
            else:
                self._leaf(program, eq, k, nodes, of_eq, runs, path, place)

    def _leaf(
        self,
        program: Program,
        eq: Equation,
        k: int,
        nodes: Sequence[int],
        charges: Sequence[Any],
        runs: float,
        path: Path,
        place: Any,
    ) -> None:
        wide = [n for n, v in zip(nodes, eq.outputs, strict=True) if v.type.dtype in NARROW]
        self._unite(wide)
        target = wide[0] if wide else nodes[0]
        summed = self._summed(charges, (OPERANDS + len(eq.inputs),))
        relative = self._relative(summed)
        self.bounds = self.bounds + relative[:, OWN]
        for i, atom in enumerate(eq.inputs):
            self._flow(atom, path, target, relative[:, OPERANDS + i], cast_cost(atom.type, runs))
        if _is_step(eq):
            self._steps += [self.place[path, a.id] for a in eq.inputs if isinstance(a, Var)]
        if not wide:
            return
        self._own[target] = self._own[target] + relative[:, NARROWED]
        self._reach[target] += float(summed[:, REACH].sum())
        self._gain[target] += saving(eq) * runs
        self._sites.append(Site(program, eq, k, place, target))
        if eq.op in WIDE_ONLY or eq.op in self.uncovered:
            self.pin(target, UNKNOWN)

    def _nested(
        self,
        eq: Equation,
        k: int,
        inner: Sequence[Wire],
        charges: Sequence[Any],
        runs: float,
        path: Path,
        place: Any,
    ) -> None:
        taken: dict[int, int] = {}
        for w in inner:
            below = w.path(path, k)
            for position, var in zip(w.operands, w.body.inputs, strict=True):
                node = self.add(below, var)
                if position in taken:
                    self._unite([taken[position], node])
                    continue
                taken[position] = node
                pair = self._summed([c and c["operands"][position] for c in charges], (2,))
                self._reach[node] += float(pair[:, 1].sum())
                atom = eq.inputs[position]
                self._flow(atom, path, node, self._relative(pair)[:, 0], cast_cost(atom.type, runs))
            for i, j in w.carried:
                self._unite([self.place[below, w.body.inputs[i].id], self.place[path, eq.outputs[j].id]])
        swept = iter(range(len(inner)))
        for w in inner:
            bodies = [None] * len(charges)
            if w.swept:
                number = next(swept)
                bodies = [c and c["bodies"][number] for c in charges]
            self._body(eq, k, w, bodies, path, place)

    def _body(self, eq: Equation, k: int, w: Wire, bodies: Sequence[Any], path: Path, place: Any) -> None:
        below = w.path(path, k)
        first = len(self._parents)
        runs = max((float(np.sum(b["ran"])) for b in bodies if b is not None), default=0.0)
        charges = [None if b is None else b["equations"] for b in bodies]
        self.program(w.body, charges, runs, below, (*place, w.title) if w.title else place)
        for j, (atom, result) in enumerate(zip(w.body.outputs, w.results, strict=True)):
            if result is None:
                if isinstance(atom, Var):
                    self._predicates.append((self.place[below, atom.id], path, k))
                continue
            target = self.place[path, eq.outputs[result].id]
            pair = self._summed([b and b["results"][j] for b in bodies], (2,))
            self._reach[target] += float(pair[:, 1].sum())
            self._flow(atom, below, target, self._relative(pair)[:, 0], cast_cost(atom.type, runs))
        if not runs:
            inside = [*(self.place[below, v.id] for v in w.body.inputs), *range(first, len(self._parents))]
            for node in inside:
                self.pin(node, NOT_RUN if w.swept else STOPS)

    def _summed(self, charges: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
        """By probe, over all trips."""
        found = np.zeros((len(charges), *shape))
        for p, charge in enumerate(charges):
            if charge is not None:
                found[p] = np.asarray(charge, np.float64).reshape(-1, *shape).sum(axis=0)
        return found

    def _relative(self, errors: np.ndarray) -> np.ndarray:
        """To what is allowed. What is not known is infinite."""
        allowed = self.allowed.reshape(-1, *[1] * (errors.ndim - 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.where(errors == 0, 0.0, errors / allowed), nan=np.inf, posinf=np.inf)

    # The graph

    def graph(self) -> Graph:
        roots = [self._root(n) for n in range(len(self._parents))]
        numbers = {root: i for i, root in enumerate(dict.fromkeys(roots))}
        node = np.array([numbers[r] for r in roots])
        own, gain, reach = np.zeros((len(numbers), len(self.allowed))), *np.zeros((2, len(numbers)))
        np.add.at(own, node, np.array(self._own))
        np.add.at(gain, node, self._gain)
        np.add.at(reach, node, self._reach)
        edges = [(node[s], node[t], w, c) for s, t, w, c in self._edges if node[s] != node[t]]
        sources, targets, weights, casts = zip(*edges, strict=True) if edges else ([], [], [], [])
        for source, _, weight, _ in edges:  # uses that cancel, as of a softmax's maximum, are uses
            reach[source] += weight.sum()
        flow = Flow(node, np.array(sources, int), np.array(targets, int), self._paths)
        return Graph(
            {key: int(node[n]) for key, n in self.place.items()},
            [replace(s, node=int(node[s.node])) for s in self._sites],
            own,
            gain,
            np.array([self._wide[root] for root in numbers]),
            self._pinned(flow, own, reach),
            flow.sources,
            flow.targets,
            np.array(weights).reshape(len(weights), len(self.allowed)),
            np.array(casts, float),
            self.bounds,
        )

    def _pinned(self, flow: Flow, own: np.ndarray, reach: np.ndarray) -> dict[int, str]:
        pinned = {int(flow.node[n]): reason for n, reason in self._pins.items()}
        later = [(int(n), NOT_FINITE) for n in np.flatnonzero(~np.isfinite(own).all(axis=1))]
        later += [(n, STOPS) for start, path, k in self._predicates for n in flow.within(start, path, k)]
        later += [(n, DECIDES) for n in flow.into(self._steps)]
        later += [(int(n), DECIDES) for n in np.flatnonzero(reach == 0)]
        for node, reason in later:
            pinned.setdefault(node, reason)
        return pinned


def _is_step(eq: Equation) -> bool:
    to_integers = eq.op == "convert_element_type" and eq.attrs["dtype"] in INTEGERS
    return eq.op in _STEPS or (to_integers and eq.inputs[0].type.inexact)
