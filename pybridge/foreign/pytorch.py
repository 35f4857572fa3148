"""Functions of PyTorch, differentiated by torch.func."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..errors import EngineUnavailable
from ..frontend.names import function_name
from .primitive import apply, array

Tensors = Sequence[Any]


def torch_function(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch as a JAX function, whose derivatives torch.func makes.

    f: takes pytrees of tensors, as many and such as the JAX function takes of arrays, and returns one. It is
        called once on ones for the shapes and dtypes of its results, and must be one that torch.func can
        differentiate: without effects, and without numbers taken out of tensors.

    Forward and reverse mode, nested as deep as torch.func lets them be; jit, vmap (one call after another).
    PyTorch runs on the CPU, in a callback. Complex derivatives follow JAX's convention, which is the
    conjugate of PyTorch's. Raises EngineUnavailable without PyTorch, ArgumentError for what is no array.
    """
    name = function_name(f)
    if importlib.util.find_spec("torch") is None:
        raise EngineUnavailable(f"{name} needs PyTorch, which is not installed: `pip install torch`")

    def called(*arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        arrays = [array(name, leaf) for leaf in leaves]

        def flat(*tensors: Any) -> Tensors:
            return tuple(jax.tree.leaves(f(*jax.tree.unflatten(tree, tensors))))

        ones = [_tensor(np.ones(x.shape, x.dtype)) for x in arrays]
        results = jax.tree.map(_type, f(*jax.tree.unflatten(tree, ones)))
        return apply(TorchFunction(name, flat), arrays, results)

    called.__name__ = name
    return called


@dataclass(frozen=True)
class TorchFunction:
    """f: takes tensors, returns a tuple of them."""

    name: str
    f: Callable[..., Tensors]

    def run(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [y.detach().resolve_conj().numpy() for y in self.f(*map(_tensor, operands))]

    def pushed(self, places: tuple[int, ...], results: tuple[int, ...]) -> TorchFunction:
        import torch

        def jvp(*operands: Any) -> Tensors:
            primals, tangents = operands[: -len(places)], operands[-len(places) :]
            active = tuple(primals[i] for i in places)
            return torch.func.jvp(self._restricted(primals, places, results), active, tangents)[1]

        return TorchFunction(self.name, jvp)

    def pulled(self, places: tuple[int, ...], results: tuple[int, ...]) -> TorchFunction:
        import torch

        def vjp(*operands: Any) -> Tensors:
            primals, cotangents = operands[: -len(results)], operands[-len(results) :]
            active = tuple(primals[i] for i in places)
            pull = torch.func.vjp(self._restricted(primals, places, results), *active)[1]
            return tuple(x.conj() for x in pull(tuple(ct.conj() for ct in cotangents)))

        return TorchFunction(self.name, vjp)

    def _restricted(
        self, primals: Tensors, places: tuple[int, ...], results: tuple[int, ...]
    ) -> Callable[..., Tensors]:
        """As a function of the operands at the places alone, with these results."""

        def f(*active: Any) -> Tensors:
            given = dict(zip(places, active, strict=True))
            found = self.f(*(given.get(i, x) for i, x in enumerate(primals)))
            return tuple(found[i] for i in results)

        return f


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.array(array))  # a copy, as JAX's arrays must not be written to


def _type(tensor: Any) -> jax.ShapeDtypeStruct:
    array = tensor.detach().numpy()
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
