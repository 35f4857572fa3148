"""Plans: the pattern, detected or given, its constant part, and the colouring."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from ..errors import PyBridgeError, WrongPattern
from ..frontend import keys
from ..frontend.adapter import jaxprs
from ..frontend.emission import to_jax
from ..frontend.lowering import lower
from ..frontend.static_arguments import NONE
from ..frontend.tracing import closed_trace, program_name
from ..ir.deferred import expanded
from ..ir.numerals import DTYPES
from ..ir.program import Program
from ..ir.schema import DERIVATIVE_RULES
from ..runtime.transforms import vjp
from ._colouring import Colouring
from ._constant_part import Parts, parted
from ._detection import Abstract, Detection, detection_of, followed, read
from ._pattern import SparsityPattern
from ._plan import SparsePlan, chosen, products
from ._problem import Others, Problem

Rest = Callable[[Any, Others], Any]


@dataclass(frozen=True)
class Making:
    """symmetric: whether the derivative is a Hessian. mode: "jvp", "vjp" or "auto"."""

    problem: Problem
    x: Any
    others: Others
    symmetric: bool
    mode: str

    def by_pattern(self, pattern: SparsityPattern) -> SparsePlan:
        """With a pattern that the caller knows. Raises WrongPattern where its shape is another."""
        start = time.perf_counter()
        shape = self._shape()
        if pattern.shape != shape:
            raise WrongPattern(f"the pattern has the shape {pattern.shape}, and the derivative has {shape}")
        symmetric = self.symmetric and not self._has_rules()
        pattern = pattern.symmetric if self.symmetric else pattern
        mode, colouring = chosen(pattern, self.mode, symmetric, reverse_only=False)
        return SparsePlan(pattern, mode, time.perf_counter() - start, colouring, pattern, None)

    def _has_rules(self) -> bool:
        """Whether rules of the user's may make a Hessian that is not symmetric."""
        try:
            return _has_rules(self._program()[0])
        except PyBridgeError:  # no Program, and so unknown
            return True

    def _shape(self) -> tuple[int, int]:
        n = self.problem.size
        if self.symmetric:
            jax.eval_shape(self.problem.scalar(self.problem.f), self.x, self.others)
            return n, n
        return jax.eval_shape(self.problem.flat(self.problem.f), self.x, self.others).size, n

    def pattern(self, at_point: bool) -> SparsityPattern:
        """By detection, everywhere or for the values of the arguments."""
        return self._analysis(at_point).pattern

    def by_detection(self, constant_part: bool) -> tuple[SparsePlan, Rest | None]:
        """The plan; and the function of which it is where part of the user's has a constant derivative."""
        start = time.perf_counter()
        analysis = self._analysis(False)
        symmetric = self.symmetric and not analysis.has_rules
        mode, colouring = chosen(analysis.pattern, self.mode, symmetric, analysis.reverse_only)
        parts = analysis.parts() if constant_part else None
        split = None if parts is None else self._split(analysis, parts, colouring)
        if split is None:
            seconds = time.perf_counter() - start
            return SparsePlan(analysis.pattern, mode, seconds, colouring, analysis.pattern, None), None
        mode, colouring, varying, constant = split
        seconds = time.perf_counter() - start
        plan = SparsePlan(analysis.pattern, mode, seconds, colouring, varying, constant)
        return plan, analysis.function(parts.rest)  # type: ignore[union-attr]

    def _split(
        self, analysis: _Analysis, parts: Parts, colouring: Colouring
    ) -> tuple[str, Colouring, SparsityPattern, np.ndarray] | None:
        """None where it saves no products with the derivative."""
        varying = analysis.of(parts.rest).pattern
        mode, fewer = chosen(varying, self.mode, False, False)
        if fewer.count >= colouring.count:
            return None
        fixed = analysis.of(parts.constant).pattern
        how, fixed_colouring = chosen(fixed, "auto", False, False)
        f = analysis.function(parts.constant)
        with jax.ensure_compile_time_eval():
            x, others = jax.tree.map(_zeros, (self.x, self.others))

            def compressed(x: Any) -> Any:
                return products(
                    lambda x: f(x, others), x, fixed_colouring.colours, fixed_colouring.count, how
                )

            values = np.asarray(jax.jit(compressed)(x)).reshape(-1)[fixed_colouring.source]
        if not np.isfinite(values).all():
            return None
        constant = np.zeros(analysis.pattern.entries, values.dtype)
        constant[analysis.pattern.places_of(fixed)] = values
        return mode, fewer, varying, constant

    def _program(self) -> tuple[Program, list[Any]]:
        """Of the constants, which come with it, the argument's elements and the leaves of the others."""
        problem = self.problem
        function = problem.scalar(problem.f) if self.symmetric else problem.flat(problem.f)
        closed, _ = closed_trace(function, (self.x, self.others), {}, NONE)
        return lower(closed, name=program_name(problem.f), hoist_constants=True)

    def _analysis(self, at_point: bool) -> _Analysis:
        program, constants = self._program()
        place, has_rules = len(constants), self.symmetric and _has_rules(program)
        arguments = [self.x, *map(keys.raw, jax.tree.leaves(self.others))]
        input_values = [None if jaxprs.any_tracer([c]) else np.asarray(c) for c in constants]
        input_values += [np.asarray(a) if at_point else None for a in arguments]
        if self.symmetric:
            program = vjp(program, [place], optimize=True)
            input_values.append(np.ones((), DTYPES[program.inputs[-1].type.dtype]))  # the cotangent
        return _Analysis.by(expanded(program, orders=1), place, input_values, constants, has_rules)


def _has_rules(program: Program) -> bool:
    return any(DERIVATIVE_RULES & eq.attrs.keys() for eq in program.all_equations())


def _zeros(x: Any) -> Any:
    aval = jax.typeof(keys.raw(x))
    return jnp.zeros(aval.shape, aval.dtype)


@dataclass(frozen=True)
class _Analysis:
    """What detection finds of a Program of constants, the argument's elements, and other arguments.

    has_rules: whether rules of the user's are in a Hessian, which need not be symmetric then.
    """

    program: Program
    place: int
    input_values: Sequence[Any]
    constants: Sequence[Any]
    has_rules: bool
    detection: Detection
    values: Sequence[Abstract]

    @classmethod
    def by(
        cls,
        program: Program,
        place: int,
        input_values: Sequence[Any],
        constants: Sequence[Any],
        has_rules: bool,
    ) -> _Analysis:
        columns = program.inputs[place].type.shape[0]
        detection = detection_of(columns)  # type: ignore[arg-type]
        every = sp.eye_array(columns, dtype=bool, format="csr")
        inputs = [
            Abstract(v.type.shape, every if k == place else None, value)  # type: ignore[arg-type]
            for k, (v, value) in enumerate(zip(program.inputs, input_values, strict=True))
        ]
        values = followed(program, inputs, detection)
        return cls(program, place, input_values, constants, has_rules, detection, values)

    def of(self, part: Program) -> _Analysis:
        return _Analysis.by(part, self.place, self.input_values, self.constants, self.has_rules)

    @property
    def reverse_only(self) -> bool:
        return self.detection.reverse_only

    @property
    def pattern(self) -> SparsityPattern:
        results = [read(self.values, atom) for atom in self.program.outputs]
        columns = self.detection.columns
        matrices = [
            sp.csr_array((y.size, columns), dtype=bool) if y.matrix is None else y.matrix for y in results
        ]
        return SparsityPattern.of_csr(sp.vstack(matrices, format="csr"))

    def parts(self) -> Parts | None:
        """None where nothing is constant, or constants are not known."""
        if self.reverse_only or jaxprs.any_tracer(self.constants):
            return None
        return parted(self.program, self.values)

    def function(self, part: Program) -> Rest:
        """A part as a function of the argument's elements and the other arguments."""
        run, constants = to_jax(part), list(self.constants)

        def function(x: Any, others: Others) -> Any:
            leaves = jax.tree.leaves(others)
            given = [*constants, x, *leaves]
            last = [np.asarray(1, DTYPES[v.type.dtype]) for v in part.inputs[len(given) :]]  # a cotangent
            results = [y.reshape(-1) for y in run(*given, *last)]
            return results[0] if len(results) == 1 else jnp.concatenate(results)

        return function
