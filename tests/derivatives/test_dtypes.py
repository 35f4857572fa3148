"""A part of the sweep over operations and dtypes, which `python -m tests.dtypes` makes whole."""

from __future__ import annotations

import sys
import warnings

import pytest
from covering import covering
from dtypes.__main__ import DTYPES, Sweep
from dtypes.expected import reason
from dtypes.outcomes import Finding
from dtypes.variants import FOREIGN, basic, extended, families, special_values, variant
from dtypes.worker import swept

from pybridge.ir.numerals import DTYPES as OURS

# What is likeliest to differ from dtype to dtype: ties, orders, overflow, division by zero, empty parts.
WATCHED = ("div", "digamma", "reduce_max", "argmax", "sort", "cumsum", "scatter_max_clip", "dot_general")
COVERED = covering(WATCHED, DTYPES.split(","), least=3)


@pytest.fixture(autouse=True)
def _warnings_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", WATCHED)
def test_as_jax(name):
    dtypes = [dtype for of, dtype in COVERED if of == name]
    found = [f for f in swept(name, dtypes, ["auto"]) if isinstance(f, Finding)]
    unexpected = [f for f in found if reason(f.variant, f.part, f.execute, f.kind) is None]
    assert not unexpected, "\n".join(map(str, unexpected))


def test_every_operation_has_a_family_that_comes_at_many_dtypes():
    names = basic()
    assert len({families()[name][0].op for name in names}) == len(names) > 140
    members = families()["add"]
    assert all(variant("add", members, dtype) for dtype in DTYPES.split(","))
    assert set(DTYPES.split(",")) == {*OURS, *FOREIGN}


def test_elementwise_operations_meet_all_pairs_of_special_values():
    _, special = extended(variant("add", families()["add"], "bf16"))
    x, y = special.inputs()
    assert x.shape == y.shape == (len(special_values("bf16")) ** 2,)


# Answers as a worker does, but dies of one dtype and does not answer for another.
_WORKER = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if "f16" in request["dtypes"]:
        os.abort()
    if "f64" in request["dtypes"]:
        time.sleep(60)
    wrong = {"variant": "x", "part": "value", "execute": "xla", "kind": "wrong", "text": ""}
    print(json.dumps({"ok": 1, "findings": [wrong]}), flush=True)
"""


def test_a_process_that_ends_or_hangs_is_a_finding_with_its_dtype():
    sweep = Sweep(["xla"], 2.0, (sys.executable, "-c", _WORKER))
    found = sweep.run("add", ["f32", "f16", "f64"])
    sweep.worker.close()
    kinds = [(f["kind"], f["variant"], f["text"]) for f in found]
    assert kinds == [
        ("wrong", "x", ""),
        ("crash", "add/f16", "SIGABRT"),
        ("hang", "add/f64", "SIGKILL"),
    ]
    assert sweep.counts["as JAX"] == sweep.counts["crash"] == sweep.counts["hang"] == 1
