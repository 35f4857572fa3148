"""A test module of JAX whose derivatives are of bridged functions.

In the module's namespace, `check_grads` and JAX's functions that differentiate bridge the function they are
given first. Whatever else the module uses of JAX is JAX's.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.test_util
from jax._src import api, public_test_util
from jax._src import test_util as jtu
from jax.extend.core import Literal

import pybridge as pb
from pybridge.frontend.adapter import jaxprs
from pybridge.runtime.julia_call import julia_call_p

_TRANSFORMATIONS = ("grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian")
_AT_A_POINT = ("jvp", "vjp", "linearize", "linear_transpose")
DIFFERENTIATE = ("check_grads", *_TRANSFORMATIONS, *_AT_A_POINT)


def substitute(module: types.ModuleType, execute: str, count: Callable[[str], None]) -> None:
    """Replaces what differentiates in the namespace of a test module.

    count: told of "derivatives", of "calls" of bridged functions, and of "unbridged" functions.
    """

    def bridge(f: Callable) -> Callable:
        count("derivatives")
        # What is a derivative of a bridged function has Programs in it already.
        return f if getattr(f, "of_bridged", False) else _Bridged(f, pb.bridge(f, execute=execute), count)

    own = {name: _first_bridged(getattr(jax, name), bridge) for name in (*_TRANSFORMATIONS, *_AT_A_POINT)}
    check_grads = functools.partial(_check_grads, bridge)
    theirs = types.SimpleNamespace(**own, make_jaxpr=_make_jaxpr)
    replaced = {id(getattr(jax, name)): function for name, function in own.items()}
    replaced[id(public_test_util.check_grads)] = check_grads
    replaced |= {id(names): _Overlaid(names, theirs) for names in (jax, api)}
    replaced[id(jtu)] = _Overlaid(jtu, types.SimpleNamespace(check_grads=check_grads))
    for name, value in list(vars(module).items()):
        if id(value) in replaced:
            setattr(module, name, replaced[id(value)])


_NEEDS_NUMBERS = (
    jax.errors.TracerArrayConversionError
    | jax.errors.TracerBoolConversionError
    | jax.errors.TracerIntegerConversionError
    | jax.errors.ConcretizationTypeError
)


@dataclass(frozen=True)
class _Bridged:
    """A function bridged, unless Python takes its arguments for numbers, which jit refuses too.

    Such are the loops and branches of Python with which JAX's are compared.
    """

    f: Callable
    bridged: Callable
    count: Callable[[str], None]

    def __call__(self, *args, **kwargs):
        self.count("calls")
        try:
            return self.bridged(*args, **kwargs)
        except pb.TracingError as e:
            if not isinstance(e.__cause__, _NEEDS_NUMBERS):
                raise e.__cause__ or e from e  # JAX's own, which the test may expect
        self.count("unbridged")
        return self.f(*args, **kwargs)


class _Overlaid:
    """A module some of whose names mean something else."""

    def __init__(self, module: types.ModuleType, names: types.SimpleNamespace):
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._names, name) if hasattr(self._names, name) else getattr(self._module, name)


def _first_bridged(transformation: Callable, bridge: Callable) -> Callable:
    @functools.wraps(transformation)
    def wrapped(f: Callable, *args, **kwargs):
        result = transformation(bridge(f), *args, **kwargs)
        if callable(result):
            result.of_bridged = True
        return result

    return wrapped


def _check_grads(bridge: Callable, f: Callable, args, order: int, *how, **named) -> None:
    """JAX's check of the bridged function, whose values moreover are those of the function itself."""
    args = tuple(args)
    g = bridge(f)
    tolerance = public_test_util.default_gradient_tolerance
    expected, found = f(*args), g(*args)
    assert jax.tree.map(_shape_and_dtype, expected) == jax.tree.map(_shape_and_dtype, found)
    public_test_util.check_close(found, expected, atol=tolerance, rtol=tolerance, err_msg="value")
    public_test_util.check_grads(g, args, order, *how, **named)


def _shape_and_dtype(x: Any) -> tuple[tuple[int, ...], Any]:
    return jax.numpy.shape(x), jax.numpy.result_type(x)


def _make_jaxpr(f: Callable, **options) -> Callable:
    """`jax.make_jaxpr`, with the operations of Programs in the place of the calls of Programs."""

    def made(*args):
        closed = jax.make_jaxpr(f, **options)(*args)
        return jax.make_jaxpr(functools.partial(_evaluate, closed))(*jax.tree.leaves(args))

    return made


def _evaluate(closed, *leaves) -> list[Any]:
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *leaves], strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        given = [read(v) for v in eqn.invars]
        if eqn.primitive is julia_call_p:
            results = eqn.params["program"].to_jax()(*given)
        else:
            results = jaxprs.bind(eqn, given)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]
