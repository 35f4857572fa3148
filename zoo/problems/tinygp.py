"""tinygp: log likelihoods of Gaussian processes, dense and quasiseparable."""

from __future__ import annotations

import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels


def _series(count: int):
    times = jnp.sort(jnp.mod(jnp.arange(count) * 0.6180339887, 1.0)) * 20
    return times, jnp.sin(times) + 0.2 * jnp.cos(7 * times)


def dense():
    """A sum of a Matern and a periodic kernel on 80 points."""
    times, values = _series(80)

    def loss(params):
        smooth = jnp.exp(params["amplitude"]) * kernels.Matern52(jnp.exp(params["scale"]))
        periodic = kernels.ExpSineSquared(scale=jnp.exp(params["period"]), gamma=jnp.exp(params["gamma"]))
        process = GaussianProcess(
            smooth + periodic, times, diag=jnp.exp(params["noise"]), mean=params["mean"]
        )
        return -process.log_probability(values)

    names = ("amplitude", "scale", "period", "gamma", "noise", "mean")
    return loss, ({name: jnp.array(0.1 * i - 0.3) for i, name in enumerate(names)},)


def large():
    """A Matern kernel on 2000 points."""
    times, values = _series(2000)

    def loss(params):
        kernel = jnp.exp(params["amplitude"]) * kernels.Matern52(jnp.exp(params["scale"]))
        return -GaussianProcess(kernel, times, diag=jnp.exp(params["noise"])).log_probability(values)

    return loss, ({"amplitude": jnp.array(0.1), "scale": jnp.array(0.5), "noise": jnp.array(-2.0)},)


def quasiseparable():
    """A sum of two damped oscillators on 400 points, in linear time by scans."""
    times, values = _series(400)

    def loss(params):
        kernel = tinygp.kernels.quasisep.SHO(omega=jnp.exp(params["omega"]), quality=2.0)
        kernel += tinygp.kernels.quasisep.Matern32(scale=jnp.exp(params["scale"]), sigma=0.5)
        process = GaussianProcess(kernel, times, diag=jnp.exp(params["noise"]))
        return -process.log_probability(values)

    return loss, ({"omega": jnp.array(0.1), "scale": jnp.array(0.5), "noise": jnp.array(-2.0)},)
