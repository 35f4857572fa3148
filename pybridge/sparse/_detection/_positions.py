"""Positions in an operand that slices, gathers, scatters and windows read or write, as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Windows:
    """positions: of each element of the slices the flat position in the operand, -1 where there is none.

    groups: of each element of the operand the flat position that stands for all it may be mistaken for,
        since where slices start along some axes is unknown; None where all is known.
    """

    positions: np.ndarray
    groups: np.ndarray | None


def windows(
    shape: Sequence[int],
    starts: Sequence[np.ndarray | None],
    batch: Sequence[int],
    sizes: Sequence[int],
    window_axes: Sequence[int],
    clip: bool,
) -> Windows:
    """The positions, of shape (*batch, *sizes of the window axes).

    starts: for each axis of the operand where slices start, of a shape that is broadcast to `batch`; None
        where it is unknown. sizes: of a slice along each axis. window_axes: those that the result keeps.
    clip: slices are moved to lie in the operand; else a slice that does not has no positions.
    """
    rank, full = len(window_axes), tuple(batch) + tuple(sizes[d] for d in window_axes)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    flat, valid = np.zeros((1,) * len(full), np.int64), np.ones((1,) * len(full), bool)
    for d, start in enumerate(starts):
        if start is None:
            continue
        most = shape[d] - sizes[d]
        start = np.asarray(start).astype(np.int64)
        start = np.clip(start, 0, most) if clip else start
        start = start.reshape(start.shape + (1,) * rank)
        if d in window_axes:
            place = len(full) - rank + list(window_axes).index(d)
            offsets = np.arange(sizes[d]).reshape([-1] + [1] * (len(full) - place - 1))
        else:
            offsets = np.zeros((), np.int64)
        valid = valid & (start >= 0) & (start <= most)
        flat = flat + (start + offsets) * strides[d]
    positions = np.broadcast_to(np.where(valid, flat, -1), full)
    unknown = [d for d, start in enumerate(starts) if start is None]
    return Windows(positions, _groups(shape, unknown) if unknown else None)


def _groups(shape: Sequence[int], unknown: Sequence[int]) -> np.ndarray:
    """The position of each element with 0 for its coordinates along the unknown axes."""
    places = np.arange(math.prod(shape)).reshape(shape)
    for d in unknown:
        places = np.take(places, [0], d)
    return np.broadcast_to(places, shape).reshape(-1)


def gathered(
    shape: Sequence[int], indices: np.ndarray | None, attrs: Mapping[str, Any], batch: Sequence[int]
):
    """The windows of a gather, in the order of the axes of its result."""
    dropped = (*attrs["collapsed_slice_dims"], *attrs["operand_batching_dims"])
    axes = [d for d in range(len(shape)) if d not in dropped]
    starts = _starts(shape, indices, batch, attrs, attrs["start_index_map"])
    found = windows(shape, starts, batch, attrs["slice_sizes"], axes, attrs["mode"] == "clip")
    return Windows(_with_windows_at(found.positions, len(batch), attrs["offset_dims"]), found.groups)


def scattered(
    shape: Sequence[int],
    indices: np.ndarray | None,
    attrs: Mapping[str, Any],
    batch: Sequence[int],
    updates: Sequence[int],
) -> Windows:
    """Where a scatter writes the elements of its updates."""
    dropped = (*attrs["inserted_window_dims"], *attrs["operand_batching_dims"])
    axes = [d for d in range(len(shape)) if d not in dropped]
    sizes = [1] * len(shape)
    for d, place in zip(axes, attrs["update_window_dims"], strict=True):
        sizes[d] = updates[place]
    starts = _starts(shape, indices, batch, attrs, attrs["scatter_dims_to_operand_dims"])
    found = windows(shape, starts, batch, sizes, axes, attrs["mode"] == "clip")
    return Windows(_with_windows_at(found.positions, len(batch), attrs["update_window_dims"]), found.groups)


def _starts(
    shape: Sequence[int],
    indices: np.ndarray | None,
    batch: Sequence[int],
    attrs: Mapping[str, Any],
    index_map: Sequence[int],
) -> list[np.ndarray | None]:
    starts: list[np.ndarray | None] = [np.zeros((1,) * len(batch), np.int64) for _ in shape]
    own = attrs.get("start_indices_batching_dims", attrs.get("scatter_indices_batching_dims", ()))
    for d, place in zip(attrs["operand_batching_dims"], own, strict=True):
        starts[d] = np.arange(batch[place]).reshape([-1] + [1] * (len(batch) - place - 1))
    for component, d in enumerate(index_map):
        starts[d] = None if indices is None else indices[..., component]
    return starts


def _with_windows_at(positions: np.ndarray, batch: int, places: Sequence[int]) -> np.ndarray:
    return np.moveaxis(positions, range(batch, positions.ndim), places)


def taps(
    size: int, count: int, window: int, stride: int, low: int, base_dilation: int, window_dilation: int
) -> np.ndarray:
    """(results, window): which element of an axis each place of each window covers, -1 in the padding."""
    place = np.arange(count)[:, None] * stride - low + np.arange(window)[None, :] * window_dilation
    inside = (place >= 0) & (place < (size - 1) * base_dilation + 1) & (place % base_dilation == 0)
    return np.where(inside, place // base_dilation, -1)


def combined(axes: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
    """(results..., window...): the flat positions of windows over several axes."""
    rank = len(axes)
    flat, valid = np.zeros((1,) * (2 * rank), np.int64), np.ones((1,) * (2 * rank), bool)
    for d, axis in enumerate(axes):
        aligned = [1] * (2 * rank)
        aligned[d], aligned[rank + d] = axis.shape
        flat = flat + np.maximum(axis, 0).reshape(aligned) * math.prod(shape[d + 1 :])
        valid = valid & (axis.reshape(aligned) >= 0)
    return np.where(valid, flat, -1)
