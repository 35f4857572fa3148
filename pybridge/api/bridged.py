"""What `bridge` returns: a function as any other is to Python, which remembers what it traced."""

from __future__ import annotations

import copy
import functools
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp

from ..engines import ENGINES, Engine, Options
from ..errors import ArgumentError
from ..frontend.adapter import devices, eager, jaxprs, loops, references
from ..frontend.names import findable, function_name, named, path_to
from ..frontend.static_arguments import Fixed, StaticArguments
from ..frontend.tracing import closed_trace, lowered, program_name
from ..ir.program import Program
from ..partition import Guard, Partition, partitioned
from ..quotients import OF_DISTRIBUTIONS
from ..runtime import julia
from ..runtime.reporting import report
from ..runtime.verification import verify

_COPIED = 1 << 16
"""Bytes of constants."""


@dataclass(frozen=True)
class Settings:
    """engine: its name. static: the arguments that are not arrays.

    while_bound, package_rules, verify: as for `bridge`.
    """

    engine: str
    options: Options
    static: StaticArguments
    while_bound: int | None
    package_rules: bool
    verify: bool

    def __str__(self) -> str:
        shown: dict[str, object] = {"engine": self.engine, "execute": self.options.execute}
        if self.static:
            shown |= {"static_argnums": self.static.positions, "static_argnames": sorted(self.static.names)}
        if self.while_bound is not None:
            shown["while_bound"] = self.while_bound
        if self.package_rules:
            shown["package_rules"] = True
        if self.verify:
            shown["verify"] = True
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


@dataclass(frozen=True)
class _Traced:
    """flat: a function of the constants and the leaves of the arguments.

    verifiable: whether its derivatives are to be those of its values.
    """

    flat: Partition
    constants: list[Any]
    out_tree: Any
    verifiable: bool

    @property
    def is_small_and_whole(self) -> bool:
        """Whether it is one Program, whose constants a compilation may have copies of."""
        bytes_ = sum(getattr(x, "nbytes", 0) for x in self.constants)
        return self.flat.is_program and bytes_ <= _COPIED and not jaxprs.any_tracer(self.constants)


class Bridged:
    """The function `f` under its name, signature and documentation; hashed and compared by identity.

    What belongs to this class is in slots: `__dict__` holds the function's attributes, whatever their names.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_compiled",
        "_f",
        "_is_whole",
        "_settings",
        "_traces",
        "_verified",
    )
    __wrapped__: Callable

    def __init__(self, f: Callable, settings: Settings):
        self._f = f
        self._settings = settings
        self._traces: dict[Any, _Traced] = {}
        self._verified: set[Any] = set()
        # Whether each trace so far is one Program, and what then runs it where nothing is traced.
        self._is_whole = not settings.static
        self._compiled: Callable | None = None
        functools.update_wrapper(self, f, updated=("__dict__",) if isinstance(f, types.FunctionType) else ())

    def __call__(self, *args, **kwargs):
        julia.check_process()  # what is compiled already would wait for threads that a fork does not copy
        if not (self._is_whole and eager.are_arrays(jax.tree.leaves((args, kwargs)))):
            return self._call(*args, **kwargs)
        if not self._traces:
            self._trace(args, kwargs)
        if not self._is_whole:
            return self._call(*args, **kwargs)
        if self._compiled is None:
            self._compiled = eager.jitted(self._call, program_name(self._f))
        return self._compiled(*args, **kwargs)

    def _call(self, *args, **kwargs):
        """The same under JAX's transformations, or piece by piece where nothing is traced."""
        traced, leaves = self._trace(args, kwargs)
        return jax.tree.unflatten(traced.out_tree, traced.flat(*traced.constants, *leaves))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<bridge of {function_name(self._f)}, {self._settings}>"

    @property
    def static_arguments(self) -> StaticArguments:
        return self._settings.static

    def executed_by(self, mode: str) -> Bridged:
        """The same function by one of the execute modes of `engines.Options`."""
        options = replace(self._settings.options, execute=mode)
        return Bridged(self._f, replace(self._settings, options=options))

    # Tracing

    def _trace(self, args: tuple, kwargs: dict[str, Any]) -> tuple[_Traced, list[Any]]:
        args, kwargs, fixed = self._settings.static.split(args, kwargs)
        leaves, tree = jax.tree.flatten((args, kwargs))
        leaves = [_array(i, x, tree) for i, x in enumerate(leaves)]
        in_a_loop = jaxprs.any_tracer(leaves) and loops.is_tracing_a_body()
        around = devices.targets(), jaxprs.trace_context(), in_a_loop
        signature = tree, tuple(jaxprs.signature(x) for x in leaves), fixed
        key = (*signature, around)
        traced = self._traces.get(key)
        if traced is None:
            missing = self._engine.unavailable()
            if missing is not None:
                raise missing
            traced = self._traced(args, kwargs, fixed, in_a_loop)
            if traced.verifiable and signature not in self._verified:
                self._verify(traced, leaves, tree)
                self._verified.add(signature)
            if not traced.is_small_and_whole:
                self._is_whole = False
            if not jaxprs.any_tracer(traced.constants):  # those of an outer trace must not outlive it
                # Of threads that come here together each traces, since one that waits for another could wait
                # for ever; all go on with what the first has made.
                traced = self._traces.setdefault(key, traced)
        return traced, leaves

    def _traced(self, args: tuple, kwargs: dict[str, Any], fixed: Fixed, in_a_loop: bool) -> _Traced:
        closed, out_tree = closed_trace(self._f, args, kwargs, fixed)
        lower = functools.partial(
            lowered, while_bound=self._settings.while_bound, package_rules=self._keeps_package_rules
        )
        name = program_name(self._f)
        run = self._run, self._run_short
        flat = partitioned(
            closed.jaxpr,
            name,
            *run,
            lower,
            self._report,
            called_in_a_loop=in_a_loop,
            package_rules=self._keeps_package_rules,
        )
        names = (eqn.primitive.name for eqn in jaxprs.all_equations(closed))
        verifiable = self._settings.verify and OF_DISTRIBUTIONS.isdisjoint(names)
        return _Traced(flat, list(closed.consts), out_tree, verifiable)

    def _verify(self, traced: _Traced, leaves: list[Any], tree: Any) -> None:
        names = [f"constant {i}" for i in range(len(traced.constants))]
        names += [_place(i, tree) for i in range(len(leaves))]
        what = f"{function_name(self._f)}, {self._settings}"
        verify(traced.flat, [*traced.constants, *leaves], names, what)

    @property
    def _engine(self) -> Engine:
        return ENGINES[self._settings.engine]

    @property
    def _keeps_package_rules(self) -> bool:
        """XLA, which has no reverse mode for loops, needs them; so do processors other than the CPU."""
        native = self._engine.reverses_loops and self._settings.options.execute != "xla"
        return self._settings.package_rules or not native or jax.default_backend() != "cpu"

    def _report(self, line: str) -> None:
        report(f"{program_name(self._f)}: {line}", self._settings.options.explain)

    def _run(self, program: Program, arrays: Sequence[Any], guard: Guard | None) -> Sequence[Any]:
        return self._engine.apply(program, arrays, replace(self._settings.options, guard=guard))

    def _run_short(self, program: Program, arrays: Sequence[Any], guard: Guard | None) -> Sequence[Any]:
        """Left to XLA, which compiles it with what is around it, if the user has left the choice to us."""
        options = replace(self._settings.options, guard=guard)
        by_xla = replace(options, execute="xla") if options.execute == "auto" else options
        return self._engine.apply(program, arrays, by_xla)

    # Pickles and copies, which have nothing of what was traced

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """The function and the settings; see `findable` for how pickle finds a decorated function."""
        path = path_to(self)
        if operator.index(protocol) < 4 and path is not None:
            return path  # to find the function in this object, they would have this object pickled first
        return _restored, (findable(self._f), self._settings), self._attributes()

    def _attributes(self) -> dict[str, Any]:
        """The attributes that the user has set, without those that come from the function."""
        given = vars(Bridged(self._f, self._settings))
        return {name: x for name, x in vars(self).items() if name not in given or given[name] is not x}

    def __copy__(self) -> Bridged:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Bridged:
        """Itself, as of every function; another one if it calls an object or method that has a state."""
        f = copy.deepcopy(self._f, memo)
        if f is self._f:
            return self
        other = memo[id(self)] = Bridged(f, self._settings)
        vars(other).update(copy.deepcopy(self._attributes(), memo))
        return other


def _restored(f: Callable, settings: Settings) -> Bridged:
    """The one that this process has decorated `f` with, if it has; else a new one."""
    name = getattr(f, "__qualname__", "").removesuffix(".__wrapped__")
    decorated = named(getattr(f, "__module__", None), name)
    if isinstance(decorated, Bridged) and decorated._f is f and decorated._settings == settings:
        return decorated
    return Bridged(f, settings)


def _array(i: int, x: Any, tree: Any) -> Any:
    """An array of the leaf; Python numbers become weakly typed arrays, as under `jax.jit`."""
    if isinstance(x, (jax.Array, jax.ShapeDtypeStruct)):
        return x
    references.refuse_arguments(x)
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as e:
        raise ArgumentError(
            f"{_place(i, tree)}, of type {type(x).__name__}, is not an array; if it is to be known when the "
            "function is traced, name the argument in static_argnums or static_argnames (a tree of arrays "
            "and other things can be split in two, as by equinox.partition)"
        ) from e


def _place(i: int, tree: Any) -> str:
    """The leaf as the caller wrote it: `args[0]['x']`."""
    paths = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(tree, range(tree.num_leaves)))[0]
    side, *path = paths[i][0]
    return ("args", "kwargs")[side.idx] + jax.tree_util.keystr(tuple(path))
