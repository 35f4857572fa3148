"""What wrote the files in `v1` that begin with `jax`: they are of the first version, and stay as they are.

Those that end with `reference` are Programs without inputs, whose results are arguments of the model of that
name and what JAX makes of them. Run as a program, `write_v1.py FOLDER`, it writes such files.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb
from pybridge.ir.numerals import DTYPES

FOLDER = Path(__file__).parent / "v1"
_RNG = np.random.default_rng(0)
KERNEL, MIXER, TABLE = _RNG.normal(size=(3, 30)), _RNG.normal(size=(30, 30)) / 6, _RNG.normal(size=(8, 30))

Window = collections.namedtuple("Window", "low high")
WINDOW_NAME = "pybridge.tests.Window"


@jax.custom_jvp
def softened(x):
    return jnp.log1p(jnp.exp(x))


@softened.defjvp
def _softened_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return softened(x), t * jax.nn.sigmoid(x)


def model(p: dict[str, Any], x: Any, *, scale: Any = 1.0) -> dict[str, Any]:
    """A scan, a cond, a while loop, a gather and a rule of the user's, with constants of its own."""
    hidden = softened(x @ KERNEL + p["bias"])
    mixed, norms = jax.lax.scan(lambda h, _: (jnp.tanh(h @ MIXER), (h**2).sum()), hidden, length=3)
    chosen = jax.lax.cond(norms[0] > 1.0, lambda h: h * TABLE[0], lambda h: h + TABLE[1], mixed)
    _, grown = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]) * 1.1), (0, chosen))
    rows = jnp.asarray(TABLE)[jnp.array([1, 5, 5])]
    return {"y": (grown @ rows.T * p["gain"][0] * scale).sum(-1), "norms": [norms, p["gain"][1]]}


def loss(x: Any) -> Any:
    """The model without its while loop, as a number: every derivative of it exists in reverse mode."""
    hidden = softened(x @ KERNEL + 0.1)
    mixed, norms = jax.lax.scan(lambda h, _: (jnp.tanh(h @ MIXER), (h**2).sum()), hidden, length=3)
    chosen = jax.lax.cond(norms[0] > 1.0, lambda h: h * TABLE[0], lambda h: h + TABLE[1], mixed)
    return (chosen @ jnp.asarray(TABLE).T).sum() + norms.prod() ** 0.5


def model_arguments() -> tuple[tuple, dict[str, Any]]:
    p = {"bias": np.linspace(-1, 1, 30), "gain": [np.float64(1.5), np.float64(-0.5)]}
    return (p, np.linspace(-1, 1, 6).reshape(2, 3)), {"scale": np.float64(0.75)}


def loss_reference() -> dict[str, Any]:
    x = np.linspace(-0.9, 1, 12).reshape(4, 3)
    v, w = np.cos(np.arange(12.0)).reshape(4, 3), np.sin(np.arange(12.0)).reshape(4, 3)
    gradient = jax.grad(loss)

    def product(x):
        return jax.jvp(gradient, (x,), (v,))[1]

    return {
        "x": x,
        "v": v,
        "w": w,
        "value": loss(x),
        "gradient": gradient(x),
        "hvp": product(x),
        "third": jax.jvp(product, (x,), (w,))[1],
    }


def model_reference() -> dict[str, Any]:
    (p, x), keywords = model_arguments()
    v = np.cos(np.arange(6.0)).reshape(2, 3)
    value, tangent = jax.jvp(lambda x: model(p, x, **keywords), (x,), (v,))
    return {"p": p, "x": x, **keywords, "v": v, "value": value, "tangent": tangent}


def patterned(dtype: str, count: int = 77) -> np.ndarray:
    """Bits of all kinds: NaNs with payloads, infinities, -0.0, denormals; in bools 0 and 1."""
    numbers = np.arange(count * DTYPES[dtype].itemsize)
    stored = (numbers % 3 == 0 if dtype == "bool" else numbers * 37 % 256).astype(np.uint8)
    return np.frombuffer(stored.tobytes(), DTYPES[dtype]).reshape(7, -1)


def dtypes() -> dict[str, Any]:
    return {name: jnp.asarray(patterned(name)) for name in DTYPES}


def sizes(x: Any) -> Any:
    """For batches of any size, of which it computes with the size."""
    y = jnp.concatenate([x, 2 * x]) @ KERNEL[:, :5]
    return jnp.tanh(y).sum(0) / x.shape[0], y[: x.shape[0] // 2]


def windowed(w: Window, x: Any) -> Window:
    return Window(jnp.clip(x, w.low, w.high).sum(), (w, x * 2))


def values_alone(f: Callable[[], Any]) -> Any:
    """The Program of what JAX has computed: constants."""
    values = jax.tree.map(np.asarray, f())
    return pb.trace(lambda: jax.tree.map(jnp.asarray, values))()


def programs() -> dict[str, Callable[[], Any]]:
    (b,) = jax.export.symbolic_shape("b")
    args, kwargs = model_arguments()
    batch = jax.ShapeDtypeStruct((b, 3), np.float64)
    window = Window(np.float64(-0.5), np.float64(0.5))
    return {
        "jax-model": lambda: pb.trace(model)(*args, **kwargs),
        "jax-model-reference": lambda: values_alone(model_reference),
        "jax-loss": lambda: pb.trace(loss)(loss_reference()["x"]),
        "jax-loss-reference": lambda: values_alone(loss_reference),
        "jax-dtypes": lambda: pb.trace(dtypes)(),
        "jax-sizes": lambda: pb.trace(sizes)(batch),
        "jax-windowed": lambda: pb.trace(windowed)(window, np.linspace(-1, 1, 4)),
        "jax-vjp": lambda: pb.trace(loss)(loss_reference()["x"]).vjp().optimize(),
    }


def register() -> None:
    jax.export.register_namedtuple_serialization(Window, serialized_name=WINDOW_NAME)


if __name__ == "__main__":
    register()
    with jax.enable_x64(True):
        for name, made in programs().items():
            pb.save(Path(sys.argv[1]) / f"{name}.pybridge", made())
