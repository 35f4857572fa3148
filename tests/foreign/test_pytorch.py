"""Functions of PyTorch under JAX's transformations, and compared with other engines."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transformed import check

import pybridge as pb

_INSTALLED = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(
    not _INSTALLED, reason="PyTorch is not installed, which is too large to be brought for tests"
)
pytestmark = pytest.mark.usefixtures("x64")


def network(p, x):
    hidden = jnp.tanh(x @ p["weights"] + p["bias"])
    return {"scores": hidden @ p["out"], "size": jnp.sum(p["weights"] ** 2)}


def in_torch(p, x):
    import torch

    hidden = torch.tanh(x @ p["weights"] + p["bias"])
    return {"scores": hidden @ p["out"], "size": torch.sum(p["weights"] ** 2)}


def generated(rng):
    p = {"weights": rng.normal(size=(3, 4)), "bias": rng.normal(size=4), "out": rng.normal(size=4)}
    return p, rng.normal(size=(5, 3))


@needs_torch
def test_derivatives_are_those_of_jax():
    check(pb.torch_function(in_torch), network, generated, (False, True))


@needs_torch
def test_complex_derivatives_follow_jax():
    import torch

    check(
        pb.torch_function(lambda z: torch.abs(torch.exp(1j * z) * z.conj()) ** 2),
        lambda z: jnp.abs(jnp.exp(1j * z) * z.conj()) ** 2,
        lambda rng: (rng.normal(size=2) + 1j * rng.normal(size=2),),
        (True,),
    )


@needs_torch
def test_integers_are_passed_on():
    f = pb.torch_function(lambda x, n: (x[n] ** 2, n + 1))
    x, n = np.arange(4.0), np.array([2, 0])
    value, after = f(x, n)
    assert value.tolist() == [4.0, 0.0] and after.tolist() == [3, 1]
    assert jax.grad(lambda x: f(x, n)[0].sum())(x).tolist() == [0.0, 0.0, 4.0, 0.0]


@needs_torch
def test_it_is_compared_as_a_candidate():
    candidates, args = {"torch": pb.torch_function(in_torch)}, generated(np.random.default_rng(5))
    result = pb.compare(network, *args, engines=["jax"], candidates=candidates, order=2, repeats=0)
    assert result.ok and len(result["torch"].second.errors) == 3


@needs_torch
def test_what_torch_cannot_differentiate_is_a_row_that_says_so():
    f = pb.torch_function(lambda x: x * float(x.sum()))
    result = pb.compare(
        lambda x: x * x.sum(), np.ones(2), engines=["jax"], candidates={"torch": f}, repeats=0
    )
    assert result["torch"].state in ("failed", "disagrees") and not result.ok


WITHOUT = """
import sys
sys.modules["torch"] = None
import importlib.util
import pybridge as pb
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
try:
    pb.torch_function(len)
except pb.EngineUnavailable as e:
    print(e)
"""


def test_without_pytorch_it_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "pip install torch" in done.stdout
