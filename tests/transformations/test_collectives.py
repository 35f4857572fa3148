"""Collectives in a bridged function: segments of it are Programs, what is between devices JAX binds.

One process with eight devices runs all of it, since JAX counts its devices once.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import re

import collective_cases as cases
import pytest
from casekit import QUICK_FLAGS
from covering import covering

import pybridge as pb


@pytest.fixture(scope="module")
def eight():
    """`eight(function, *args, **kwargs)` is its value in a process with eight devices."""
    context = multiprocessing.get_context("spawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", f"--xla_force_host_platform_device_count=8 {QUICK_FLAGS}")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:

            def run(function, *args, **kwargs):
                return pool.submit(function, *args, **kwargs).result(timeout=300)

            yield run


def possible(name: str, what: str) -> bool:
    return what not in cases.CASES[name].without


@pytest.mark.parametrize(
    ("name", "what"), covering(cases.CASES, ["vmap of grad", "forward over reverse", "forward"], possible, 1)
)
def test_transformations(eight, name, what):
    eight(cases.check, name, what, cases.CASES[name].types, execute="julia")


@pytest.mark.parametrize("name", ["pmean", "in_scan", "loop_without_collectives", "in_custom_vjp", "in_cond"])
@pytest.mark.parametrize("options", [{"execute": "xla"}, {"engine": "jax"}], ids=str)
@pytest.mark.parametrize("types", [True, False])
def test_ways_to_run(eight, name, options, types):
    eight(cases.check, name, "reverse", types, **options)


@pytest.mark.parametrize("name", cases.CASES)
def test_number_of_pieces(eight, name):
    """Known beforehand: one, and one more for each collective that another one waits for."""
    case = cases.CASES[name]
    assert eight(cases.count, name, case.types) == case.segments


def test_the_pieces_run_in_julia(eight):
    """The trips' numbers, of two other segments the way there and back, and of a number's its gradient, for
    the cotangent 1 and for one by which that cannot be scaled."""
    kernels, text = eight(cases.native_calls)
    assert kernels == 1 + 2 * 2 + 2
    assert "all_reduce" in text and "sine" not in text and "tanh" not in text


@pytest.mark.parametrize("name", ["shard_map", "vmap"])
@pytest.mark.parametrize("what", ["reverse", "forward over reverse"])
def test_the_whole_of_it_in_the_bridged_function(eight, name, what):
    eight(cases.check_whole, name, what)


@pytest.mark.parametrize(
    "name", ["psum", "axis_index", "all_gather", "psum_scatter", "all_to_all", "ppermute", "in_checkpoint"]
)
def test_axes_that_vmap_names(eight, name):
    eight(cases.check_named_by_vmap, name)


@pytest.mark.parametrize("policy", cases.POLICIES)
def test_policies_of_checkpoint(eight, policy):
    ours, theirs = eight(cases.kept, policy)
    assert ours == theirs and bool(ours) == (policy != "nothing")


def test_pmap(eight):
    eight(cases.check_pmap)


def test_eager(eight):
    eight(cases.check_eager)


def test_two_axes(eight):
    eight(cases.check_two_axes)


def test_what_is_the_same_on_all_devices_stays_so(eight):
    eight(cases.check_types_of_results)


def test_traces_belong_to_their_axes(eight):
    eight(cases.check_meshes_do_not_share_traces)


def test_a_program_is_refused(eight):
    error = eight(cases.refusal, "trace")
    assert type(error) is pb.UnsupportedPrimitive
    assert re.search(r"shard_map at .*collective_cases.py:\d+ .*pybridge.bridge", str(error))


def test_names_that_no_axis_has(eight):
    error = eight(cases.refusal, "wrong name")
    assert type(error) is pb.TracingError and "unbound axis name: k" in str(error)
