"""Every benchmark runs and is right at a small size, and the command tells and keeps what was measured."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil

import numpy as np
import pytest
from covering import in_turn, some
from typer.testing import CliRunner
from unoptimised import unoptimised  # noqa: F401

from benchmarks import library, limits, picture, processes, runner, settings, turns
from benchmarks.case import GRAD, OURS, Limit, Requirement
from benchmarks.claims import claims
from benchmarks.command import app
from benchmarks.measure import Right, cold, error, measure
from benchmarks.page import IN_README, page, replace_short_table
from benchmarks.polybench import KERNELS
from benchmarks.processes import Worker, WorkerFailed
from benchmarks.report import limit_lines, lines, passed, table
from benchmarks.results import OLDER_JAX, Measured, Results, Side
from benchmarks.suites import SUITES, cases, named

MACHINE = {"date": "2026-01-01", "processor": "some, 2 cores"}
CASES = tuple(cases())


def _parameters() -> list:
    """Each program at one of its sizes and dtypes, and one of two from Polybench, which are much alike.

    At the small size a program of that family is what it is at the medium one.
    """
    names = [f"{kernel.name}-small" for kernel in KERNELS]
    programs: dict[str, list] = {}
    for case in (case for suite in ("rows", "choices") for case in SUITES[suite].cases if case.make):
        programs.setdefault(re.sub(r"-[fb]*\d+$", "", case.name), []).append(case)
    polybench = [case for case in SUITES["polybench"].cases if case.name in names]
    chosen = [*in_turn(programs.values()), *some(polybench, len(polybench) // 2)]
    return [pytest.param(case, id=case.name) for case in chosen]


@pytest.mark.parametrize("case", _parameters())
def test_row_is_right_at_a_small_size(case):
    row = measure(case, 1, quick=True)
    assert row.ours.failure == ""
    assert row.agrees, row.ours.error
    assert list(row.rivals) == list(case.rivals)
    assert all(side.error is None or side.error <= case.tolerance for side in row.rivals.values())
    assert row.ours.seconds > 0 and row.ours.memory > 0 and row.reference_memory > 0


@pytest.mark.parametrize("case", some([c for c in CASES if c.limit], 4), ids=lambda c: c.name)
def test_limit_is_right_and_allocates_nothing(case):
    side = limits.measure(case, quick=True)
    assert side.failure == ""
    assert side.error <= case.tolerance and side.seconds > 0


@pytest.mark.parametrize(
    ("file", "constants", "said"),
    [
        ("lorenz.jl", (50, 2e-4), "lorenz.jl is not JAX's derivative: its error is"),
        ("kinematics.jl", (50, 1e-4), "kinematics.jl: status 1, ERROR: LoadError: MethodError"),
        ("matrix_carry.jl", (), "matrix_carry.jl: status 1, ERROR: LoadError"),
    ],
)
def test_limit_that_is_wrong_or_dies_has_no_time(file, constants, said):
    (case,) = (case for case in CASES if case.name == "lorenz")
    problem = dataclasses.replace(case.make(True), constants=constants)
    side = limits.measure(dataclasses.replace(case, make=lambda quick: problem, limit=Limit(file)), True)
    assert side.seconds is None
    assert side.failure.startswith(said)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_functions_of_libraries_are_measured():
    (case,) = (case for case in CASES if case.name == "scan-4")
    assert min(library.measured(case, quick=True)) > 0


@pytest.mark.parametrize("case", [c for c in CASES if c.cold], ids=lambda c: c.name)
def test_row_of_new_processes_has_the_same_gradient_on_all_sides(case):
    ours, *rivals = (np.array(cold(case, side, quick=True)) for side in (OURS, *case.rivals))
    assert np.abs(ours).min() > 0
    assert len(rivals) == 2
    for theirs in rivals:
        assert error(ours, theirs) <= case.tolerance


def test_names_are_unique_and_every_row_has_rivals():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    for case in CASES:
        assert case.rivals, case.name
        assert (case.make is None) != (case.cold is None), case.name


def test_error_sees_wrong_and_missing_numbers():
    right = {"a": np.array([1.0, 100.0]), "b": np.zeros(2)}
    assert error(right, right) == 0
    assert error({**right, "a": np.array([2.0, 100.0])}, right) == 0.01
    assert error({**right, "a": np.array([np.nan, 100.0])}, right) == math.inf
    assert error({**right, "a": np.ones(1)}, right) == math.inf
    assert error({**right, "b": np.ones(2)}, right) > 1e300


def made(case: str, mine: float | None, theirs: float, threads: int = 1, **changes) -> Measured:
    """A row by its seconds, with as much memory as JAX takes."""
    known = next(c for c in CASES if c.name == case)
    row = Measured(
        case,
        threads,
        known.cold is not None,
        Side(first=mine, seconds=mine, memory=8, error=0.0),
        {rival: Side(first=theirs, seconds=theirs, memory=8) for rival in known.rivals},
        8,
        agrees=True,
    )
    return dataclasses.replace(row, **changes)


def with_errors(mine: float, theirs: float) -> Measured:
    row = made("scan-60", 0.001, 0.05)
    return dataclasses.replace(row, ours=dataclasses.replace(row.ours, error=mine), reference_error=theirs)


def test_ratio_is_how_many_times_as_fast_pybridge_is():
    row = made("scan-60", 0.001, 0.04)
    assert row.ratio(GRAD) == pytest.approx(40)
    assert row.met(Requirement(GRAD, 39.9)) is True
    assert row.met(Requirement(GRAD, 40.1)) is False
    assert row.met(Requirement(GRAD, 40.1, threads=2)) is None
    assert dataclasses.replace(row, agrees=False).met(Requirement(GRAD, 39.9)) is False
    assert made("scan-60", None, 1.0).met(Requirement(GRAD, 1)) is False


def test_seed_row_is_held_to_memory_and_to_jax_on_each_number_of_threads():
    results = Results(MACHINE, False, (made("seed-2048", 1.0, 16.0), made("seed-2048", 1.0, 13.0, threads=2)))
    found = {(line.row.threads, line.rival): (line.required, line.met) for line in lines(results)}
    assert found == {
        (1, "jax.vjp"): (15, True),
        (2, "jax.vjp"): (15, False),
        (1, "custom_vjp"): (15, True),
        (2, "custom_vjp"): (15, False),
        (1, "x*g"): (1 / 1.2, True),
        (2, "x*g"): (1 / 1.2, True),
    }


def test_gradients_of_a_batch_are_held_to_more_where_there_are_two_threads():
    rows = made("many-lorenz-100", 1.0, 4.0), made("many-lorenz-100", 1.0, 4.0, threads=2)
    found = [(line.required, line.met) for line in lines(Results(MACHINE, False, rows))]
    assert found == [(3, True), (5, False)]


def test_the_rival_is_jax_as_it_is_faster_as_it_comes_or_with_the_flag(monkeypatch):
    """Processes that tell given times, and one that ends."""
    times = {(OURS, ""): 0.001, (GRAD, ""): 0.04, (GRAD, turns.FLAG): 0.01}
    (case,) = (case for case in CASES if case.name == "scan-60")

    class Told:
        def __init__(self, *arguments, variables, python):
            side = arguments[arguments.index("--side") + 1]
            self.time = 0.5 if python == "older" else times[side, variables["XLA_FLAGS"]]

        def ask(self, question):
            if self.time is None:
                raise WorkerFailed("it ended")
            return {"first": {"first": 1.0, "memory": 8}, "sample": self.time, "error": 0.0}[question]

        def __enter__(self):
            return self

        def __exit__(self, *raised):
            pass

    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(turns, "Worker", Told)
    monkeypatch.setattr(turns, "ask", lambda *words, variables: None)
    monkeypatch.setattr(turns, "load_right", lambda path: Right(None, 8, 0.0))
    monkeypatch.setattr(turns, "older_python", lambda: "older")
    row = turns.measure(case, 1, quick=False)
    assert row.older == Side(1.0, 0.5, 8, 0.0)
    assert row.ratio(GRAD) == pytest.approx(10) and row.rivals[GRAD].flagged and row.agrees
    (line,) = lines(Results(MACHINE, False, (row,)))
    assert line.against == "jax.grad, flag" and line.required == 20
    times[GRAD, ""] = 0.01
    assert not turns.measure(case, 1, quick=False).rivals[GRAD].flagged
    times[GRAD, turns.FLAG] = None
    assert turns.measure(case, 1, quick=False).ratio(GRAD) == pytest.approx(10)
    times[OURS, ""] = None
    monkeypatch.setattr(turns, "older_python", lambda: None)
    assert turns.measure(case, 1, quick=False).older is None
    failed = turns.measure(case, 1, quick=False)
    assert failed.ours.failure == "it ended" and not failed.agrees and failed.ratio(GRAD) is None


def test_page_has_a_column_of_an_older_jax_where_there_was_one(tmp_path):
    rows = (made("seed-512", 0.1, 1.0, older=Side(1.0, 3.0, 8, 0.0)), made("lorenz", 1.0, 4.0))
    results = Results({**MACHINE, OLDER_JAX: "0.10.2"}, False, rows)
    text = page(SUITES["rows"], results, "picture.png").splitlines()
    (head,) = {line for line in text if line.startswith("| benchmark")}
    at = head.split(" | ").index("JAX 0.10.2")
    cells = [line.split(" | ")[at] for line in text if line.startswith(("| VJP", "| Lorenz"))]
    assert cells == ["3 s", "", "", ""]  # of the first of three rivals; and none was measured
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results
    assert "JAX 0.10.2" not in page(SUITES["rows"], Results(MACHINE, False, rows), "picture.png")


@pytest.mark.skipif(settings.older_python() is None, reason="no older JAX is installed")
def test_an_older_jax_answers_as_a_side_does(tmp_path):
    words = ("-m", "benchmarks.worker", "1", "scan-4", "--quick")
    right = str(tmp_path / "right.pickle")
    processes.ask(*words, "--right", right, variables={})
    asked = (*words, "--side", GRAD, "--right", right)
    with Worker(*asked, variables={}, python=settings.older_python()) as worker:
        assert worker.ask("first")["memory"] > 0 and worker.ask("sample") > 0
        assert worker.ask("error") < 1e-12


def test_a_process_answers_line_by_line_and_says_why_it_ended():
    code = "for line in iter(input, 'stop'): print(len(line), flush=True)\nraise SystemError('stopped')"
    with Worker("-c", code, variables={}) as worker:
        assert [worker.ask("four"), worker.ask("eleven more")] == [4, 11]
        for _ in range(2):
            with pytest.raises(WorkerFailed, match="status 1: SystemError: stopped"):
                worker.ask("stop")


def test_a_process_that_does_not_answer_is_ended():
    with (
        Worker("-c", "import time; time.sleep(60)", variables={}, patience=0.2) as worker,
        pytest.raises(WorkerFailed, match=r"no answer within 0\.2 s"),
    ):
        worker.ask("first")


def by_hand(case: str, mine: float, seconds: float | None, **changes) -> Measured:
    return made(case, mine, 100.0, limit=Side(seconds=seconds, error=0.0), **changes)


def test_row_is_held_against_its_limit():
    results = Results(MACHINE, False, (by_hand("scan-60", 1.5, 1.0), by_hand("lstm", 1.7, 1.0)))
    assert [(line.row.over_limit, line.most, line.met) for line in limit_lines(results)] == [
        (1.5, 1.6, True),
        (1.7, 1.6, False),
    ]
    (claim,) = claims(results)
    assert "By hand on 1 thread: 1.6 times its time in the geometric mean of 2, at most 1.3" in claim.text
    assert not claim.met and not passed(results)
    assert passed(Results(MACHINE, False, (by_hand("scan-60", 1.2, 1.0),)))
    assert not passed(Results(MACHINE, False, (by_hand("scan-60", 1.2, 1.0, agrees=False),)))
    assert not passed(Results(MACHINE, False, (by_hand("scan-60", 1.2, None),)))
    assert not list(limit_lines(Results(MACHINE, False, (made("scan-60", 1.0, 1.0),))))
    text = page(SUITES["rows"], results, "picture.png")
    assert "| scan with 60 scalar leaves, 614 steps | 1.5 s | 1 s | 1.5 | 1.6 | yes | 5 s |" in text
    assert "| 1.7 s | 1 s | 1.7 | 1.6 | **no** | 33.3 s |" in text


def test_limit_that_failed_is_told():
    row = made("scan-60", 0.001, 0.05, limit=Side(failure="it is wrong"))
    for quick in (False, True):
        results = Results(MACHINE, quick, (row,))
        assert not passed(results)
        assert "- scan-60, One thread, by hand: it is wrong" in page(SUITES["rows"], results, "picture.png")


@pytest.mark.parametrize(
    ("row", "fine"),
    [
        (made("scan-60", 0.001, 0.05), True),
        (made("scan-60", 0.001, 0.01), False),
        (made("scan-60", 0.001, 0.05, agrees=False), False),
        (made("scan-60", 0.001, 0.05, reference_memory=7), False),
        (with_errors(2e-7, 1e-7), False),
        (with_errors(1e-7, 1e-7), True),
        (with_errors(2e-16, 0.0), True),
        (made("scan-60", None, 0.05, ours=Side(failure="it died"), agrees=False), False),
    ],
)
def test_run_passes_where_all_that_is_required_is_met(row, fine):
    assert passed(Results(MACHINE, False, (row,))) is fine


def test_quick_run_is_held_to_agreement_alone():
    slow = made("scan-60", 1.0, 0.5)
    assert passed(Results(MACHINE, True, (slow,)))
    assert not passed(Results(MACHINE, True, (dataclasses.replace(slow, agrees=False),)))


def test_claims_over_several_rows():
    newton = [made(f"newton-{name}", 1.0, ratio) for name, ratio in (("quadratic", 1.1), ("hmm", 2.5))]
    unrolled = [made("unrolled-200", 2.0, 50.0), made("unrolled-1000", 8.0, 200.0)]
    complete = [*newton, made("newton-logistic", 1.0, 1.2), *unrolled]
    assert [claim.met for claim in claims(Results(MACHINE, False, complete))] == [True, True]
    worse = [*newton[:1], made("newton-hmm", 1.0, 1.9), *complete[2:4], made("unrolled-1000", 13.0, 200.0)]
    assert [claim.met for claim in claims(Results(MACHINE, False, worse))] == [False, False]
    assert list(claims(Results(MACHINE, False, newton))) == []


def test_results_come_back_from_json(tmp_path):
    rows = made("seed-512", 1.0, 2.0), made("unrolled-200", 1.0, 2.0), by_hand("scan-4", 1.0, 1.0)
    results = Results(MACHINE, False, rows, 0.5)
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results


def test_results_of_before_there_were_limits_are_read(tmp_path):
    results = Results(MACHINE, False, (made("scan-4", 1.0, 2.0),), 0.5)
    results.save(tmp_path / "results.json")
    data = json.loads((tmp_path / "results.json").read_text())
    del data["rows"][0]["limit"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    assert Results.load(tmp_path / "old.json") == results
    assert "## By hand" not in page(SUITES["rows"], results, "picture.png")


def test_page_and_picture_show_every_row_and_say_what_failed(tmp_path):
    dead = made("scan-4", None, 1.0, ours=Side(failure="status -11"), agrees=False)
    results = Results(MACHINE, False, (made("scan-60", 0.001, 0.05, reference_memory=7), dead))
    text = page(SUITES["rows"], results, "picture.png")
    assert "| scan with 60 scalar leaves, 614 steps | `jax.grad` | 1 ms | 50 ms | 50 | 20 | yes |" in text
    assert "(**more**)" in text
    assert "status -11" in text and "| 3 | **no** |" in text
    picture.save(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
    assert table(results).renderables


def test_short_table_goes_between_its_marks():
    assert all(named(name) in SUITES["rows"].cases for name in IN_README)
    results = Results(MACHINE, False, (made("scan-60", 0.001, 0.02), made("lorenz", 0.001, 0.05)))
    text = "before\n<!-- benchmarks -->\nold\n<!-- end of benchmarks -->\nafter"
    once = replace_short_table(text, results)
    assert "old" not in once and "| `jax.grad` | 50 |" in once and "| 20 |" not in once
    assert once.startswith("before\n") and once.endswith("\nafter")
    assert replace_short_table(once, results) == once
    assert replace_short_table("no marks", results) == "no marks"


def test_command_measures_a_row_in_a_process_of_its_own(tmp_path):
    target = tmp_path / "out.json"
    done = CliRunner().invoke(app, ["scan-4", "--quick", "--threads", "1", "--json", str(target)])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(target.read_text())["rows"]
    assert row["case"] == "scan-4" and row["agrees"] and row["threads"] == 1
    assert row["limit"]["seconds"] > 0
    assert "scan with 4 scalar leaves" in done.output and "by hand" in done.output


def test_rows_are_kept_as_they_are_measured_and_added_to_a_file(tmp_path, monkeypatch):
    target = tmp_path / "out.json"
    started = Results(MACHINE, False, ())
    monkeypatch.setattr(runner, "begin", lambda *_: started)

    def measured(*rows):
        def until_it_dies(*_):
            yield from rows
            raise WorkerFailed("no more")

        monkeypatch.setattr(runner, "rows", until_it_dies)
        with pytest.raises(WorkerFailed):
            CliRunner().invoke(app, ["scan-*", "--add", "--json", str(target)], catch_exceptions=False)
        return Results.load(target)

    first, second, again = made("scan-4", 1.0, 2.0), made("scan-60", 1.0, 2.0), made("scan-4", 1.0, 3.0)
    assert measured(first).rows == (first,)
    assert measured(second, again).rows == (second, again)
    started = Results({**MACHINE, "date": "2026-02-02"}, False, ())
    assert measured(first).machine["date"] == "2026-02-02"
    started = Results({**MACHINE, "processor": "another"}, False, ())
    done = CliRunner().invoke(app, ["scan-4", "--add", "--json", str(target)])
    assert done.exit_code == 2 and "another" in done.output
    assert Results.load(target).rows == (second, first)


def test_rows_are_chosen_by_patterns():
    done = CliRunner().invoke(app, ["--suite", "polybench", "*-tiny"])
    assert done.exit_code == 2 and "'*-tiny'" in done.output


@pytest.mark.parametrize(
    "words", [["nothing-of-that-name"], ["--threads", "0"], ["--threads", "x"], ["--add"]]
)
def test_command_refuses_what_does_not_exist(words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "UnknownOption" in done.output
