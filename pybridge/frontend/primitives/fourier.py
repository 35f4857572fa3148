"""Fourier transforms."""

from __future__ import annotations

from jax import lax

from ...errors import UnsupportedPrimitive
from ..dimensions import to_dim
from .spec import Spec


def _fft(x, *, fft_type, fft_lengths):
    return lax.fft(x, fft_type, fft_lengths)


def _transforming(eqn):
    lengths = tuple(map(to_dim, eqn.params["fft_lengths"]))
    if not all(isinstance(n, int) for n in lengths):
        raise UnsupportedPrimitive(f"fft over axes of symbolic size {lengths}", primitive="fft")
    return {"fft_type": eqn.params["fft_type"].name.lower(), "fft_lengths": lengths}


SPECS = [Spec("fft", _fft, _transforming)]
