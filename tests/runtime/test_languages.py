"""Both languages agree on every case: Julia reads, checks and prints its Program alike, and runs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import QUICK
from cases import CASES

from pybridge.frontend.tracing import trace
from pybridge.runtime import evaluation, julia

# Units in the last place by which a sum or a special function may differ between two libraries, generously.
TOLERANCE = {"f64": 1e-12, "c128": 1e-12, "f16": 3e-2, "bf16": 3e-2}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_julia_prints_and_computes_the_same(case):
    with case.context():
        args = case.inputs()
        program = trace(case.f)(*args)
        assert julia.request("normalize", program.text, arguments=[]) == program.text
        expected = jax.tree.leaves(jax.jit(case.f, compiler_options=QUICK)(*map(jnp.asarray, args)))
        found = evaluation.evaluate(program, *args)
        for x, y, type_ in zip(expected, found, program.output_types, strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            tolerance = TOLERANCE.get(type_.dtype, 2e-5) if type_.inexact else 0
            kind = np.complex128 if type_.inexact else x.dtype
            np.testing.assert_allclose(
                y.astype(kind), np.asarray(x).astype(kind), rtol=tolerance, atol=tolerance
            )
        for given, original in zip(args, case.inputs(), strict=True):
            assert given.tobytes() == original.tobytes(), "an input was changed"
