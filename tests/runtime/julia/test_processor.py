"""An old Julia is told what processor it is on, and its OpenBLAS while it starts, and nobody else is."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from pybridge.runtime.julia import processor

AVX2 = {"sse2", "avx", "avx2", "fma"}


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (set(), None),
        ({"sse2", "avx"}, None),
        (AVX2, "haswell"),
        (AVX2 | {"avx512f"}, "haswell"),
        (AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}, "skylake-avx512"),
    ],
)
def test_kinds(flags, kind):
    found = processor.kind_of(flags)
    assert (found and found.llvm) == kind


@pytest.mark.parametrize(
    ("release", "mine", "told"),
    [((1, 5, 3), None, "Haswell"), ((1, 10, 1), None, None), ((1, 5, 3), "Zen", "Zen")],
)
def test_openblas_is_told_while_an_old_julia_starts(monkeypatch, release, mine, told):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if mine:
        monkeypatch.setenv("OPENBLAS_CORETYPE", mine)
    monkeypatch.setattr(processor, "processor_flags", lambda: AVX2)
    with processor.told_to_openblas(SimpleNamespace(release=release)):
        assert os.environ.get("OPENBLAS_CORETYPE") == told
    assert os.environ.get("OPENBLAS_CORETYPE") == mine


@pytest.mark.parametrize(
    ("release", "flags", "told"),
    [((1, 5, 3), AVX2, ["--cpu-target=haswell"]), ((1, 5, 3), set(), []), ((1, 10, 1), AVX2, [])],
)
def test_an_old_julia_is_told_too(monkeypatch, release, flags, told):
    monkeypatch.setattr(processor, "processor_flags", lambda: flags)
    assert processor.options(SimpleNamespace(release=release)) == told
