"""`pb.julia_function`: the public face."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

from ..errors import ArgumentError, NotPicklable, UnknownOption
from ..frontend.static_arguments import NO_STATIC, Argnames, Argnums, StaticArguments, static_options
from ..ir.numerals import DTYPES
from ..ir.types import TensorType
from ..runtime import julia
from ..runtime.verification import verify as verify_derivative
from . import trees
from .call import Call, Function
from .compile import infer
from .primitive import bind
from .source import object_source, read_source
from .static import fix
from .traced import Traced, traced

Result = Any | Callable[..., Any] | None

_BACKEND = re.compile(r"Auto\w+\(.*\)", re.DOTALL)


def julia_function(
    function: Any,
    *,
    source: str | os.PathLike[str] | None = None,
    result: Result = None,
    engine: str = "enzyme",
    jvp: str | None = None,
    vjp: str | None = None,
    inplace: bool = False,
    inputs: Literal["auto", "view", "copy"] = "auto",
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    verify: bool = False,
) -> JuliaFunction:
    """A Julia function as a JAX function, under jit, grad, vmap and all the rest (docs/functions.md).

    function: its name, with dots for modules; or a Julia object of juliacall's.
    source: a file (`model.jl`), Julia code, or the name of a package; without it Main is meant.
    result: what it returns, a tree of `jax.ShapeDtypeStruct`; or a function that gives this tree for the
        arguments' shapes and dtypes; or None, to learn it from one call on arguments of ones.
    engine: "enzyme" calls Julia, and Enzyme.jl differentiates the function where the user's rules do not;
        "transpose" traces it once, to operations of JAX, which then need no Julia; a backend of ADTypes.jl
        such as "AutoForwardDiff()" gives its first derivatives through DifferentiationInterface.jl.
    jvp, vjp: names of Julia functions in the same source: `jvp(arguments, tangents)` gives the result's
        tangent, `vjp(arguments, cotangent)` a tuple of the arguments' cotangents.
    inplace: the function writes its result into its first argument, `f!(out, x...)`.
    inputs: "view" shows matrices as lazy transposes of JAX's memory, read-only; "copy" gives plain Arrays,
        copies that may be written to; "auto" takes the first that the function has a method for.
    static_argnums: positions of arguments (negative ones from the end) that are no arrays but values which
        Julia has as constants: integers, floats, bools, strings, None and tuples of them.
    static_argnames: keyword arguments of the Julia function, whose values are always such.
    verify: before the first call with new shapes and dtypes, compare the JVP and the VJP with difference
        quotients, as for `bridge`; raises WrongDerivative.
    """
    _check_engine(engine)
    if engine == "transpose" and (jvp or vjp):
        raise ArgumentError(
            "engine='transpose' takes no rules: JAX differentiates what Julia computes; "
            "engine='enzyme' takes them, and so do jax.custom_jvp and jax.custom_vjp"
        )
    if inputs not in ("auto", "view", "copy"):
        raise UnknownOption(f"inputs= is 'auto', 'view' or 'copy', not {inputs!r}")
    if inplace and result is None:
        raise ArgumentError("an in-place function needs result=, the shapes and dtypes of what it fills")
    if isinstance(function, str):
        if function.split() != [function]:
            raise ArgumentError(f"{function!r} is not the name of a Julia function; code goes into source=")
        name, place = function, read_source(source)
    elif source is not None:
        raise ArgumentError("source= goes with the name of a function, not with a Julia object")
    else:
        name, place = object_source(function)
    described = Function("_".join(name.split()), place, jvp, vjp, inplace, inputs)
    static = static_options(static_argnums, static_argnames)
    return JuliaFunction(described, result, static=static, verify=verify).by(engine)


def backends() -> list[str]:
    """The backends of ADTypes.jl that Julia has the packages for, as `engine=` takes them."""
    return julia.request("function_backends").split()


def _check_engine(engine: str) -> None:
    if engine not in ("enzyme", "transpose") and not _BACKEND.fullmatch(engine):
        raise UnknownOption(
            "julia_function has the engines 'enzyme', 'transpose' and those of ADTypes, such as "
            f"'AutoForwardDiff()', not {engine!r}"
        )


@dataclass(frozen=True, eq=False)
class JuliaFunction:
    """Calls a Julia function on pytrees of arrays and numbers."""

    function: Function
    result: Result
    engine: str = "enzyme"
    static: StaticArguments = NO_STATIC
    verify: bool = False
    _verified: set[Any] = field(default_factory=set, repr=False)
    """For which functions, engines and types of arguments that is done; shared by `by`."""

    def by(self, engine: str) -> JuliaFunction:
        """The same function with the derivatives of another engine, as `julia_function` takes it."""
        _check_engine(engine)
        backend = engine if _BACKEND.fullmatch(engine) else None
        return replace(self, function=replace(self.function, backend=backend), engine=engine)

    @property
    def static_arguments(self) -> StaticArguments:
        """What `pb.bridge` and the like take for static, too."""
        return self.static

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not self.static and not named:
            return self._of(arguments)
        dynamic, others, fixed = self.static.split(arguments, named)
        if others:
            raise ArgumentError(
                f"the keyword arguments {', '.join(others)} are not static, and no others can be passed by "
                f"keyword: static_argnames={tuple(others)}, or pass them by position"
            )
        function = fix(self.function, fixed, len(arguments))
        result = fixed.into(self.result) if callable(self.result) else self.result
        return replace(self, function=function, result=result, static=NO_STATIC)._of(dynamic)

    def _of(self, arguments: tuple[Any, ...]) -> Any:
        arrays = jax.tree.map(_array, arguments)
        types = trees.types_of(arrays)
        leaves = jax.tree.leaves(arrays)
        if self.engine == "transpose":
            operations, outline = self._traced(types)
            run = operations.run
        else:
            julia.check_process()
            call, outline = self._call(trees.text(types), types)
            run = functools.partial(bind, call)
        if self.verify:
            self._verify(run, arrays, trees.text(types))
        return jax.tree.unflatten(outline, run(*leaves))

    def _verify(self, run: Callable[..., Any], arrays: Any, types: str) -> None:
        key = self.function, self.engine, types
        if key in self._verified:
            return
        paths = jax.tree_util.tree_leaves_with_path(arrays)
        names = ["arguments" + jax.tree_util.keystr(path) for path, _ in paths]
        verify_derivative(run, [x for _, x in paths], names, f"{self.function.name}, engine={self.engine!r}")
        self._verified.add(key)

    def __repr__(self) -> str:
        f = self.function
        return f"julia_function({f.name!r}, source={f.source.kind!r}, engine={self.engine!r})"

    @property
    def __name__(self) -> str:
        return self.function.name

    def __reduce__(self) -> Any:
        """Its description: the source goes along, a name of Main or of a package is looked up again."""
        if self.function.source.kind == "object":
            raise NotPicklable(
                f"{self.function.name} is an object in this process's Julia, which no other process has: "
                "write julia_function with its name and source="
            )
        return JuliaFunction, (self.function, self.result, self.engine, self.static, self.verify)

    def __copy__(self) -> JuliaFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> JuliaFunction:
        return self

    def _traced(self, types: Any) -> tuple[Traced, Any]:
        promised = None if self.result is None else self._promised(types)
        found = traced(
            self.function, trees.text(types), None if self.result is None else trees.text(promised)
        )
        return found, jax.tree.structure(found.result if self.result is None else promised)

    def _call(self, text: str, types: Any) -> tuple[Call, Any]:
        inferred = self.result is None
        tree = trees.read(infer(self.function, text)) if inferred else self._promised(types)
        leaves, outline = jax.tree.flatten(tree)
        if inferred:
            leaves = [_narrowed(t) for t in leaves]
            tree = jax.tree.unflatten(outline, leaves)
        inputs = tuple(jax.tree.leaves(types))
        return _call(self.function, text, trees.text(tree), inputs, tuple(leaves), inferred), outline

    def _promised(self, types: Any) -> Any:
        promise = self.result
        if callable(promise):
            structs = jax.tree.map(lambda t: jax.ShapeDtypeStruct(t.shape, DTYPES[t.dtype]), types)
            promise = promise(*structs)
        return jax.tree.map(_checked, trees.types_of(promise))


# One object for equal calls, so that they are compared by identity where JAX looks them up.
_call = functools.lru_cache(maxsize=4096)(Call)


def _array(leaf: Any) -> Any:
    if isinstance(leaf, str | bytes) or leaf is None:
        raise ArgumentError(f"arrays and numbers can go to Julia, not {type(leaf).__name__} ({leaf!r:.60})")
    try:
        return jnp.asarray(leaf)
    except TypeError as reason:
        raise ArgumentError(f"{type(leaf).__name__} cannot go to Julia: {reason}") from reason


def _narrowed(type_: TensorType) -> TensorType:
    """The type that JAX has for it: without 64-bit types, a shorter one."""
    dtype = jax.dtypes.canonicalize_dtype(DTYPES[type_.dtype])
    return trees.types_of(jax.ShapeDtypeStruct(type_.shape, dtype))


def _checked(type_: TensorType) -> TensorType:
    if _narrowed(type_) != type_:
        raise ArgumentError(
            f"result= has {type_}, but JAX's 64-bit types are off: jax.config.update('jax_enable_x64', True)"
        )
    return type_
