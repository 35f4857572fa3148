"""Programs differentiated by Enzyme.jl: the JAX primitives `enzyme_call` and `enzyme_derivative`.

`enzyme_call` is the Program as a native kernel. Its JVP is `enzyme_derivative` in forward mode, which is
linear in the tangents; the transpose of that is `enzyme_derivative` in reverse mode, and the other way
round. What is differentiated a second time is differentiated as the derivative Program that JVP rules and
transposition make of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax
import jax.ffi
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from ...errors import EngineUnavailable, JuliaError, NotDifferentiable
from ...frontend.adapter import devices, eager, jaxprs
from ...frontend.adapter.extend import Primitive
from ...frontend.emission import to_jax
from ...functions.compile import run_julia
from ...ir.deferred import NoProgram, activated, expanded, values
from ...ir.numerals import DTYPES
from ...ir.program import Program
from ...ir.types import TensorType
from ...runtime import julia_call, native, transforms
from ...runtime.batches import batched
from ...runtime.requests import ask, digits, enzyme_error, references

enzyme_call_p = Primitive("enzyme_call")
enzyme_derivative_p = Primitive("enzyme_derivative")
enzyme_call_p.multiple_results = enzyme_derivative_p.multiple_results = True


@dataclass(frozen=True)
class Derivative:
    """Operands: the Program's inputs, then tangents of the active ones, or cotangents of the results.

    program: has inexact results alone, and the user's derivative rules for the active inputs.
    origin: the same with all rules that there are, for further derivatives.
    mode: forward gives the results' tangents, reverse the active inputs' cotangents.
    batch: the sizes of leading axes; each item is a call of its own. Results have them all.
    batched: for each operand which of them it has.
    """

    program: Program
    mode: Literal["forward", "reverse"]
    active: tuple[int, ...]
    origin: Program = field(compare=False)
    batch: tuple[int, ...] = ()
    batched: tuple[tuple[bool, ...], ...] = ()

    @property
    def active_types(self) -> list[TensorType]:
        return [self.program.input_types[i] for i in self.active]

    @property
    def results(self) -> list[TensorType]:
        return list(self.program.output_types if self.mode == "forward" else self.active_types)

    @property
    def count(self) -> int:
        """Of the Program's inputs; linear is what comes after them."""
        return len(self.program.inputs)

    def batch_axes(self, operand: int) -> tuple[bool, ...]:
        return self.batched[operand] if self.batch else ()

    def handler_name(self) -> str:
        how = f"{self.mode}{self.active}{self.batch}{self.batched}"
        return native.target_name(self.program, how)


def call(program: Program, *args) -> list[Any]:
    """The Program's results for arrays of exactly its input types."""
    return enzyme_call_p.bind(*args, program=program)


def derivative(d: Derivative, *args) -> list[Any]:
    return enzyme_derivative_p.bind(*args, d=d)


# Running


@enzyme_call_p.def_impl
def _call_impl(*args, program):
    program = values(program)
    return eager.run(enzyme_call_p, args, program.name, lambda *xs: to_jax(program)(*xs), program=program)


@enzyme_derivative_p.def_impl
def _derivative_impl(*args, d):
    try:
        return run_julia(enzyme_derivative_p, args, f"the derivative of {d.program.name}", d=d)
    except JuliaError as failure:
        raise enzyme_error(failure) from None


@enzyme_call_p.def_abstract_eval
def _call_types(*avals, program):
    return [devices.result_aval(t.shape, DTYPES[t.dtype], avals) for t in program.output_types]


@enzyme_derivative_p.def_abstract_eval
def _derivative_types(*avals, d):
    return [devices.result_aval((*d.batch, *t.shape), DTYPES[t.dtype], avals) for t in d.results]


def _lower_call(ctx, *operands, program):
    _refuse_export(ctx, program)
    return native.lower(ctx, values(program), operands)


def _lower_derivative(ctx, *operands, d):
    _refuse_export(ctx, d.program)
    return jax.ffi.ffi_lowering(_target(d))(ctx, *operands)


@functools.cache
def _target(d: Derivative) -> str:
    name, handler = d.handler_name(), _handler(d)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    return name


def _handler(d: Derivative) -> int:
    """The address of the FFI handler that Enzyme.jl makes."""
    linear = len(d.active if d.mode == "forward" else d.program.outputs)
    batched = [d.batch_axes(k) for k in range(d.count + linear)] if d.batch else []
    how = (
        d.mode,
        digits([i in d.active for i in range(d.count)]),
        ",".join(map(str, d.batch)) or "-",
        ",".join("".join("1" if m else "0" for m in axes) for axes in batched) or "-",
    )
    key = ":".join((d.program.digest, *how))
    constants = references(native.kept_constants(d.program))
    return int(ask("enzyme", d.program, key, *how, constants))


def _refuse_export(ctx, program: Program) -> None:
    if devices.is_export(ctx):
        raise EngineUnavailable(
            f'{program.name} runs by engine="enzyme" as native code, which no export can hold'
        )


def _elsewhere(ctx, *operands, **params):
    raise EngineUnavailable('engine="enzyme" works on the CPU alone; engine="transpose" works everywhere')


for _p, _lower in ((enzyme_call_p, _lower_call), (enzyme_derivative_p, _lower_derivative)):
    mlir.register_lowering(_p, _elsewhere)
    mlir.register_lowering(_p, _lower, platform="cpu")


# Differentiation


def _call_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program):
    results = call(program, *primals)
    active = tuple(i for i, t in enumerate(tangents) if not jaxprs.is_zero(t))
    inexact = tuple(t.inexact for t in program.output_types)
    dots = iter(())
    if any(inexact):
        smooth = _restricted(program, inexact)
        try:
            d = Derivative(_with_rules(smooth, active), "forward", active, smooth)
        except NoProgram:
            return julia_call.jvp_by_jax(program, active, primals, tangents)
        dots = iter(derivative(d, *primals, *(tangents[i] for i in active)))
    return results, [next(dots) if i else jaxprs.no_tangent(y) for i, y in zip(inexact, results, strict=True)]


def _with_rules(program: Program, active: Sequence[int]) -> Program:
    """The Program with its rules of first order: Enzyme takes what is in them as it is."""
    mask = tuple(i in active for i in range(len(program.inputs)))
    return expanded(activated(program, mask), orders=0)


def _restricted(program: Program, kept: Sequence[bool]) -> Program:
    """The Program with some of its results."""
    return replace(program, outputs=tuple(y for y, k in zip(program.outputs, kept, strict=True) if k))


def _derivative_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, d: Derivative):
    n = d.count
    terms = []
    if not all(map(jaxprs.is_zero, tangents[n:])):
        terms.append(derivative(d, *primals[:n], *map(jaxprs.instantiated, tangents[n:], primals[n:])))
    perturbed = [i for i in range(n) if not jaxprs.is_zero(tangents[i])]
    if perturbed:

        def of_perturbed(*given):
            args = list(primals)
            for i, x in zip(perturbed, given, strict=True):
                args[i] = x
            return by_transposition(d)(*args)

        terms.append(
            jax.jvp(
                of_perturbed, tuple(primals[i] for i in perturbed), tuple(tangents[i] for i in perturbed)
            )[1]
        )
    sums = [functools.reduce(jnp.add, column) for column in zip(*terms, strict=True)]
    return derivative(d, *primals), sums


def by_transposition(d: Derivative) -> Callable[..., list[Any]]:
    """The same as a Program that the transpose engine makes, and differentiates."""
    if d.mode == "forward":
        both = transforms.jvp(d.origin, d.active, optimize=True)
        program = replace(both, outputs=both.outputs[len(d.program.outputs) :])
    else:
        program = transforms.vjp(d.origin, d.active, optimize=True)
    f: Callable = functools.partial(julia_call.call, program, execute="auto")
    for k in reversed(range(len(d.batch))):
        f = jax.vmap(f, in_axes=tuple(0 if axes[k] else None for axes in d.batched))
    return f


def _derivative_transpose(cotangents: Sequence[Any], *args, d: Derivative):
    n = d.count
    if any(map(ad.is_undefined_primal, args[:n])):
        raise NotDifferentiable(f"a derivative of {d.program.name} is linear in tangents alone")
    given = [not jaxprs.is_zero(ct) for ct in cotangents]
    if d.mode == "forward":
        program, origin = _restricted(d.program, given), _restricted(d.origin, given)
        back = replace(d, mode="reverse", program=program, origin=origin)
    else:
        back = replace(d, mode="forward", active=tuple(i for i, g in zip(d.active, given, strict=True) if g))
    whole = (True,) * len(d.batch)
    if d.batch:
        back = replace(back, batched=(*d.batched[:n], *(whole for g in given if g)))
    found = derivative(back, *args[:n], *(ct for ct, g in zip(cotangents, given, strict=True) if g))
    linear = [
        devices.varying_like(_summed(y, d.batch_axes(k)), x.aval) if ad.is_undefined_primal(x) else None
        for k, (x, y) in enumerate(zip(args[n:], found, strict=True), n)
    ]
    return [None] * n + linear


def _summed(x: Any, axes: tuple[bool, ...]) -> Any:
    """What all items of a batch share gets the sum of their cotangents."""
    shared = tuple(k for k, own in enumerate(axes) if not own)
    return x.sum(shared) if shared else x


ad.primitive_jvps[enzyme_call_p] = _call_jvp
ad.primitive_jvps[enzyme_derivative_p] = _derivative_jvp
ad.primitive_transposes[enzyme_derivative_p] = _derivative_transpose


# Batching: the Program itself is batched as in `julia_call`; a derivative runs once for each item.


def _batch_call(args: Sequence[Any], dims: Sequence[Any], *, program: Program):
    whole = batched(program, args, dims)
    return call(whole.program, *whole.hoisted, *args), whole.dims


def _batch_derivative(args: Sequence[Any], dims: Sequence[Any], *, d: Derivative):
    size = next(x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None)
    moved = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)]
    batched = tuple((dim is not None, *d.batch_axes(k)) for k, dim in enumerate(dims))
    results = derivative(replace(d, batch=(size, *d.batch), batched=batched), *moved)
    return results, [0] * len(results)


batching.primitive_batchers[enzyme_call_p] = _batch_call
batching.primitive_batchers[enzyme_derivative_p] = _batch_derivative
