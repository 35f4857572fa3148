"""`bridge`: a JAX function whose derivatives another engine makes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from .engines import ENGINES, Engine, Options
from .errors import ArgumentError, UnknownOption
from .frontend import jaxprs
from .pieces import Pieces, in_pieces
from .program import Program
from .tracing import check_bound, closed_trace, lowered, program_name, static_positions

EXECUTES = ("auto", "xla", "julia")


def bridge(
    f: Callable | None = None,
    *,
    engine: str = "transpose",
    execute: str = "auto",
    static_argnums: int | Sequence[int] = (),
    while_bound: int | None = None,
    explain: bool = False,
) -> Callable:
    """The function `f` with derivatives made by `engine`; all of JAX works on the result.

    `f` takes and returns pytrees of arrays; it is traced once for each structure, shapes and dtypes of its
    arguments. Also a decorator: `@bridge`, `@bridge(engine=...)`.

    engine: "transpose" (Julia's JVP rules and transposition), "enzyme" (Enzyme.jl), "jax" (JAX's own),
        "enzyme-jax" (the package enzyme-ad).
    execute: "julia" compiles Programs in Julia to native kernels that XLA calls on the CPU, "xla" re-emits
        them as lax operations; "auto" is native where every primitive of the Program has a kernel.
    static_argnums: positional arguments that are not arrays; hashable, closed over.
    while_bound: an upper bound on the trips of every `lax.while_loop` in `f` whose count is not known; it
        lets reverse mode through such loops. A loop that runs longer gives wrong derivatives.
    explain: say on stderr how each Program runs, and why, when that is decided: as JAX compiles it.

    Raises UnknownOption; EngineUnavailable, JuliaNotFound or JuliaUnusable when it is called without what the
    engine needs, and, at the first call with new shapes, what `trace` raises; with `execute="julia"`
    UnsupportedPrimitive, as JAX compiles, for what has no native kernel.
    """
    if f is None:
        return functools.partial(
            bridge,
            engine=engine,
            execute=execute,
            static_argnums=static_argnums,
            while_bound=while_bound,
            explain=explain,
        )
    chosen = _engine(engine)
    options = Options(_execute(execute, chosen), explain)
    check_bound(while_bound)
    if not callable(f):
        raise UnknownOption(f"bridge takes a function, got {type(f).__name__}")
    static = static_positions(static_argnums)
    bridged = _Bridged(f, chosen, options, static, while_bound)
    return functools.update_wrapper(bridged, f, updated=())


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


@dataclass(frozen=True)
class _Traced:
    """flat: a function of the constants and the leaves of the arguments."""

    flat: Pieces
    constants: list[Any]
    out_tree: Any


def _array(i: int, x: Any) -> Any:
    """An array of the leaf; Python numbers become weakly typed arrays, as under `jax.jit`."""
    if isinstance(x, (jax.Array, jax.ShapeDtypeStruct)):
        return x
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as e:
        raise ArgumentError(
            f"argument leaf {i} of type {type(x).__name__} is not an array; name its position in "
            "static_argnums"
        ) from e


def _hashable(i: int, x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        raise ArgumentError(
            f"argument {i} is in static_argnums and must be hashable; a {type(x).__name__} is not"
        ) from None
    return x


@dataclass(eq=False)
class _Bridged:
    """The callable that `bridge` returns; remembers what it traced."""

    f: Callable
    engine: Engine
    options: Options
    static: tuple[int, ...]
    while_bound: int | None
    traces: dict[Any, _Traced] = field(default_factory=dict)

    def __call__(self, *args, **kwargs):
        traced, leaves = self._trace(args, kwargs)
        return jax.tree.unflatten(traced.out_tree, traced.flat(*traced.constants, *leaves))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _trace(self, args, kwargs) -> tuple[_Traced, list[Any]]:
        dynamic = tuple(None if i in self.static else x for i, x in enumerate(args))
        leaves, tree = jax.tree.flatten((dynamic, kwargs))
        leaves = [_array(i, x) for i, x in enumerate(leaves)]
        fixed = tuple(_hashable(i, args[i]) for i in self.static if i < len(args))
        key = (tree, tuple(jaxprs.signature(x) for x in leaves), fixed, jaxprs.trace_context())
        if key not in self.traces:
            missing = self.engine.unavailable()
            if missing is not None:
                raise missing
            traced = self._traced(args, kwargs)
            if jaxprs.any_tracer(traced.constants):
                return traced, leaves  # constants of an outer trace must not outlive it
            self.traces[key] = traced
        return self.traces[key], leaves

    def _traced(self, args, kwargs) -> _Traced:
        closed, out_tree = closed_trace(self.f, args, kwargs, self.static)
        lower = functools.partial(lowered, while_bound=self.while_bound)
        flat = in_pieces(closed.jaxpr, program_name(self.f), self._run, lower)
        return _Traced(flat, list(closed.consts), out_tree)

    def _run(self, program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
        return self.engine.apply(program, arrays, self.options)
