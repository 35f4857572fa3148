"""`compare`: every engine on one function, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..engines import ENGINES
from ..errors import PyBridgeError, UnknownOption
from ..frontend.static_arguments import Argnames, Argnums, static_arguments
from ..functions import JuliaFunction, backends
from ._comparison import Comparison
from ._engines import BASELINE
from ._machine import machine
from ._problem import checked_problem, plain_function
from ._reference import exact
from ._session import Session


def compare(
    f: Callable,
    *args: Any,
    engines: Iterable[str] | None = None,
    candidates: Mapping[str, Callable] | None = None,
    seed: int = 0,
    repeats: int = 10,
    budget: float = 10.0,
    isolate: bool | None = None,
    timeout: float = 600.0,
    rtol: float | None = None,
    order: int = 1,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """`f`'s value, JVP and VJP at `args` by every engine, against JAX in float64 and finite differences.

    args: pytrees of arrays and numbers; integers among them are passed on but not differentiated.
    engines: names; all by default. `jax` is always among them, because the others are measured against it.
    candidates: more implementations of `f` by name, with derivatives of their own: a custom_vjp, say. Of a
        Julia function they are by default those by each backend of ADTypes that Julia has packages for.
    seed: of the random tangents and cotangents.
    repeats, budget: rounds of timing, 0 for none, and about how many seconds they may take for a stage.
    isolate: which engines run in a process of their own: those known to be able to end it (default), all
        but `jax` (True), none (False). timeout: after so many seconds such a process is ended.
    static_argnums, static_argnames: arguments that are not arrays but hashable values, as for `bridge`.
    rtol: the relative error that counts as agreement, and no larger one does; by default what rounding
        explains (docs/compare.md).
    order: 2 for second derivatives too: the Hessian's product with a vector, by each nesting of forward and
        reverse mode.
    progress: called with what is being done.

    An engine that is missing, fails, or takes its process down is a row that says why. Raises TracingError
    where `f` itself cannot be traced, ArgumentError, NotDifferentiable and UnknownOption before anything
    runs.
    """
    if order not in (1, 2):
        raise UnknownOption(f"order is 1 or 2, not {order!r}")
    if candidates is None:
        candidates = _by_backends(f) if engines is None else {}
    names = _names(engines, candidates)
    args, _, fixed = static_arguments(f, static_argnums, static_argnames).split(args, {})
    task = checked_problem(fixed.into(plain_function(f)), args, seed)
    progress("reference in float64")
    session = Session(task, exact(task), {}, repeats, budget, order=order)
    for name in names:
        progress(f"engine {name}")
        session.run(name, isolate, timeout)
    for name, g in candidates.items():
        progress(f"candidate {name}")
        session.try_candidate(name, fixed.into(g))
    session.settle()
    progress("times")
    session.time()
    progress("Taylor remainders")
    reference, rows = session.finish(rtol)
    return Comparison(
        function=task.name,
        arguments=task.arguments(),
        seed=seed,
        epsilon=task.epsilon,
        reference=reference,
        rows=rows,
        machine=machine(),
        rtol=rtol,
        problem=task,
        candidates={name: fixed.into(g) for name, g in candidates.items()},
        vjp=session.exact.vjp,
    )


def _by_backends(f: Callable) -> dict[str, Callable]:
    """A Julia function by each backend of ADTypes that its Julia has."""
    if not isinstance(f, JuliaFunction):
        return {}
    try:
        return {code: f.by(code) for code in backends()}
    except PyBridgeError:  # no Julia: which each row says by itself
        return {}


def _names(engines: Iterable[str] | None, candidates: Mapping[str, Callable]) -> list[str]:
    names = list(dict.fromkeys(ENGINES if engines is None else engines))
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise UnknownOption(f"there is no engine {unknown[0]!r}; there are {', '.join(map(repr, ENGINES))}")
    taken = [name for name in candidates if name in ENGINES]
    if taken:
        raise UnknownOption(f"a candidate cannot be called {taken[0]!r}, which is an engine")
    return names if BASELINE in names else [*names, BASELINE]
