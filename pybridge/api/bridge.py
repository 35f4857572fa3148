"""`bridge`: a JAX function whose derivatives another engine makes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import overload

from ..engines import ENGINES, Engine, Options
from ..errors import UnknownOption
from ..frontend.adapter import faults
from ..frontend.static_arguments import Argnames, Argnums, static_arguments
from ..frontend.tracing import check_bound
from .bridged import Bridged, Settings

EXECUTES = ("auto", "xla", "julia")


@overload
def bridge(
    f: Callable,
    *,
    engine: str = ...,
    execute: str = ...,
    static_argnums: Argnums = ...,
    static_argnames: Argnames = ...,
    while_bound: int | None = ...,
    package_rules: bool = ...,
    verify: bool = ...,
    explain: bool = ...,
) -> Bridged: ...


@overload
def bridge(
    *,
    engine: str = ...,
    execute: str = ...,
    static_argnums: Argnums = ...,
    static_argnames: Argnames = ...,
    while_bound: int | None = ...,
    package_rules: bool = ...,
    verify: bool = ...,
    explain: bool = ...,
) -> Callable[[Callable], Bridged]: ...


def bridge(
    f: Callable | None = None,
    *,
    engine: str = "transpose",
    execute: str = "auto",
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    while_bound: int | None = None,
    package_rules: bool = False,
    verify: bool = False,
    explain: bool = False,
) -> Callable:
    """The function `f` with derivatives made by `engine`; all of JAX works on the result.

    `f` takes and returns pytrees of arrays; it is traced once for each structure, shapes and dtypes of its
    arguments. Also a decorator: `@bridge`, `@bridge(engine=...)`.

    engine: "transpose" (Julia's JVP rules and transposition), "enzyme" (Enzyme.jl), "jax" (JAX's own),
        "enzyme-jax" (the package enzyme-ad).
    execute: "julia" compiles Programs in Julia to native kernels that XLA calls on the CPU, "xla" re-emits
        them as lax operations; "auto" is native where every primitive of the Program has a kernel.
    static_argnums, static_argnames: arguments that are not arrays but hashable values, for each of which `f`
        is traced anew; by position (negative ones from the end) or by name, as for `jax.jit`.
    while_bound: an upper bound on the trips of every `lax.while_loop` in `f` whose count is not known; with
        it XLA runs such loops in reverse mode. One that runs longer there has NaN for a derivative, and
        raises NotDifferentiable where JAX runs without `jit`. Native kernels need no bound, and use none.
    package_rules: loops, solves and checks of packages remain what these make of them. Otherwise, where
        kernels are native, engine "transpose" differentiates equinox's loops with checkpoints, by which
        diffrax's default adjoint solves, as the loops that they are: forwards too, and to any order. A loop
        that would carry more than 256 MiB in as many trips as it may make keeps its rule in any case. Scans
        whose trips do nothing once a condition is false, as those of bounded loops, end there. Solves of
        lineax are in Programs, and so are checks by equinox's `error_if`, whose errors are raised behind
        them. What either raises in a derivative is NaN.
    verify: before the first call with new shapes and dtypes, compare the JVP and the VJP with difference
        quotients, for each array argument along a random direction; kinks and noise are not called wrong.
        Under `jit` and `vmap`, which have no values, at random arrays. It takes some forty calls of `f` for
        each array argument.
    explain: say on stderr how each Program runs, and why, when that is decided: as JAX compiles it.

    The first call in a process warns (RuntimeWarning) of a JAX that is known to compute wrong numbers.
    Raises UnknownOption; EngineUnavailable, JuliaNotFound or JuliaUnusable when it is called without what the
    engine needs, and, at the first call with new shapes, what `trace` raises; with `execute="julia"`
    UnsupportedPrimitive, as JAX compiles, for what has no native kernel; with `verify`, WrongDerivative.
    """
    if f is None:
        return functools.partial(
            bridge,
            engine=engine,
            execute=execute,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            while_bound=while_bound,
            package_rules=package_rules,
            verify=verify,
            explain=explain,
        )
    faults.warn_once()
    chosen = _engine(engine)
    options = Options(_execute(execute, chosen), explain)
    check_bound(while_bound)
    _check_function(f)
    static = static_arguments(f, static_argnums, static_argnames)
    return Bridged(f, Settings(chosen.name, options, static, while_bound, package_rules, verify))


def _check_function(f: object) -> None:
    if isinstance(f, staticmethod | classmethod):
        kind = type(f).__name__
        raise UnknownOption(f"bridge takes a function, got a {kind}: write @{kind} above @bridge")
    if not callable(f):
        raise UnknownOption(f"bridge takes a function, got {type(f).__name__}")


def _engine(name: str) -> Engine:
    if not isinstance(name, str) or name not in ENGINES:
        raise UnknownOption(f"there is no engine {name!r}; there are {', '.join(map(repr, ENGINES))}")
    return ENGINES[name]


def _execute(name: str, engine: Engine) -> str:
    if name not in EXECUTES:
        raise UnknownOption(f"there is no execute mode {name!r}; there are {', '.join(map(repr, EXECUTES))}")
    if name == "auto":
        return "auto" if len(engine.executes) > 1 else engine.executes[0]
    if name not in engine.executes:
        raise UnknownOption(
            f"engine {engine.name!r} cannot execute by {name!r}, only by {', '.join(engine.executes)}"
        )
    return name
