"""OpenBLAS is told the processor while Julia starts, and nobody else is."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from pybridge.runtime.julia import openblas

AVX2 = {"sse2", "avx", "avx2", "fma"}


@pytest.mark.parametrize(
    ("flags", "core"),
    [
        (set(), None),
        ({"sse2", "avx"}, None),
        (AVX2, "Haswell"),
        (AVX2 | {"avx512f"}, "Haswell"),
        (AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}, "SkylakeX"),
    ],
)
def test_core(flags, core):
    assert openblas.core_type(flags) == core


@pytest.mark.parametrize(
    ("release", "mine", "told"),
    [((1, 5, 3), None, "Haswell"), ((1, 10, 1), None, None), ((1, 5, 3), "Zen", "Zen")],
)
def test_told_while_an_old_julia_starts(monkeypatch, release, mine, told):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if mine:
        monkeypatch.setenv("OPENBLAS_CORETYPE", mine)
    monkeypatch.setattr(openblas, "processor_flags", lambda: AVX2)
    with openblas.told_the_processor(SimpleNamespace(release=release)):
        assert os.environ.get("OPENBLAS_CORETYPE") == told
    assert os.environ.get("OPENBLAS_CORETYPE") == mine
