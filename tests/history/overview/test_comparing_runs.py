"""Two runs side by side: what differs, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.overview import parse_run
from raykeeper.history.http.pages.compare import compare_page
from raykeeper.history.overview.compare import (
    FUNCTIONS_LIMIT,
    FactName,
    Run,
    RunFact,
    command_facts,
    compare,
    environment_facts,
    joined_facts,
)
from raykeeper.history.overview.model import FunctionRow, Functions, JobRow, RunRef
from raykeeper.history.report.model import Confidence, FailureGroup


def a_run(**facts: str) -> Run:
    """Facts by name, all of one topic."""
    known = tuple(RunFact("versions", name, value) for name, value in facts.items())
    return Run(RunRef("n", "c", "s"), "succeeded", None, None, known, Functions((), 0), ())


def a_duration(seconds: int) -> RunFact:
    return RunFact("outcome", "Duration", f"{seconds} s", seconds)


def a_function(name: str, seconds: float) -> FunctionRow:
    return FunctionRow(name, "NORMAL_TASK", 1, 0, seconds, seconds, seconds)


def a_failure(fingerprint: str, failures: int) -> FailureGroup:
    return FailureGroup(
        fingerprint, "X", f"title {fingerprint}", failures, 0, 0.1, None, None, (), (), Confidence.CONFIRMED, 0
    )


def test_facts_that_differ_are_told_apart_from_those_that_do_not() -> None:
    comparison = compare(a_run(ray="2.60", python="3.11", image=""), a_run(ray="2.61", python="3.11", extra="x"))
    assert [(fact.name, fact.a, fact.b) for fact in comparison.differing] == [
        ("ray", "2.60", "2.61"),
        ("extra", "", "x"),
    ]
    assert [fact.name for fact in comparison.same] == ["python"]


def test_failures_of_one_run_alone_come_first() -> None:
    a = replace(a_run(), failures=(a_failure("both", 50), a_failure("gone", 2)))
    b = replace(a_run(), failures=(a_failure("both", 7), a_failure("new", 3)))
    failures = [(one.fingerprint, one.a, one.b) for one in compare(a, b).failures]
    assert failures == [("new", 0, 3), ("gone", 2, 0), ("both", 50, 7)]


def test_functions_are_ordered_by_how_much_they_changed() -> None:
    a = replace(
        a_run(), functions=Functions((a_function("same", 100), a_function("slower", 1), a_function("gone", 5)), 0)
    )
    b = replace(
        a_run(), functions=Functions((a_function("same", 100), a_function("slower", 31), a_function("new", 9)), 0)
    )
    functions = [(one.name, one.a is not None, one.b is not None) for one in compare(a, b).functions]
    assert functions == [("slower", True, True), ("new", False, True), ("gone", True, False), ("same", True, True)]
    many = replace(a_run(), functions=Functions(tuple(a_function(f"f{n}", n) for n in range(FUNCTIONS_LIMIT + 3)), 0))
    assert compare(many, a_run()).functions_left_out == 3


def test_runtime_environments_are_compared_member_by_member() -> None:
    environment = {"env_vars": {"A": "<redacted>"}, "config": {"eager_install": True}, "py_modules": ["x", "y"]}
    assert found(environment_facts([environment])) == {
        ("env vars", "A"): "<redacted>",
        ("runtime env", "config.eager_install"): "true",
        ("runtime env", "py_modules"): '["x", "y"]',
    }
    assert found(environment_facts([{"config": {"a": 1}}, {"config": {"a": 2}}, None])) == {
        ("runtime env", "config.a"): "1 | 2"
    }


def test_packages_are_compared_one_by_one() -> None:
    a = joined_facts(environment_facts([{"pip": ["torch==2.1", "numpy==1.26", "old"]}]))
    b = joined_facts(environment_facts([{"pip": {"packages": ["numpy==1.26", "torch==2.2", "new>=3"]}}]))
    differing = compare(replace(a_run(), facts=tuple(a)), replace(a_run(), facts=tuple(b))).differing
    assert [(fact.topic, fact.name, fact.a, fact.b, fact.change) for fact in differing] == [
        ("packages", "old", "any version", "", "removed"),
        ("packages", "torch", "2.1", "2.2", "changed"),
        ("packages", "new", "", ">=3", "added"),
    ]


def test_arguments_and_variables_are_compared_one_by_one() -> None:
    a = joined_facts(command_facts([a_job("SEED=1 python train.py --lr 0.1 --fast --epochs 3")]))
    b = joined_facts(command_facts([a_job("SEED=2 python train.py --epochs 3 --lr 0.5 data.csv")]))
    comparison = compare(replace(a_run(), facts=tuple(a)), replace(a_run(), facts=tuple(b)))
    assert [(fact.topic, fact.name, fact.a, fact.b) for fact in comparison.differing] == [
        ("arguments", "--lr", "0.1", "0.5"),
        ("arguments", "--fast", "set", ""),
        ("env vars", "SEED", "1", "2"),
        ("arguments", "argument 1", "", "data.csv"),
    ]
    assert [fact.name for fact in comparison.same] == ["Entrypoint", "--epochs"]


def test_jobs_of_a_session_that_run_different_things_are_not_taken_apart() -> None:
    jobs = [a_job("python a.py --lr 1"), a_job("python b.py --lr 2"), a_job("python a.py --lr 1")]
    assert found(command_facts(jobs)) == {("entrypoint", "Entrypoint"): "python a.py --lr 1 | python b.py --lr 2"}
    assert found(command_facts(jobs[:1] * 3)) == {
        ("entrypoint", "Entrypoint"): "python a.py",
        ("arguments", "--lr"): "1",
    }


@pytest.mark.parametrize(
    ("a", "b", "delta", "verdict"),
    [
        (a_duration(60), a_duration(180), "+2 min (+200%)", "worse"),
        (a_duration(180), a_duration(60), "-2 min (-67%)", "better"),
        (RunFact("outcome", "Status", "succeeded"), RunFact("outcome", "Status", "failed"), "", "worse"),
        (RunFact("outcome", "Status", "crashed"), RunFact("outcome", "Status", "ended"), "", "better"),
        (RunFact("outcome", "Status", "running"), RunFact("outcome", "Status", "failed"), "", ""),
        (RunFact("resources", "Nodes", "2", 2), RunFact("resources", "Nodes", "3", 3), "+1 (+50%)", ""),
        (RunFact("packages", "torch", "2.1"), RunFact("packages", "torch", "2.2"), "", ""),
    ],
)
def test_a_change_is_measured_and_judged(a: RunFact, b: RunFact, delta: str, verdict: str) -> None:
    [fact] = compare(replace(a_run(), facts=(a,)), replace(a_run(), facts=(b,))).differing
    assert (fact.change, fact.delta.replace("\xa0", " "), fact.verdict) == ("changed", delta, verdict)


def test_a_run_that_failed_is_not_praised_for_ending_early() -> None:
    slow, failed = (
        replace(a_run(), facts=(a_duration(180),)),
        replace(a_run(), facts=(a_duration(60),), status="failed"),
    )
    [fact] = compare(slow, failed).differing
    assert (fact.delta.replace("\xa0", " "), fact.verdict) == ("-2 min (-67%)", "")


@pytest.mark.parametrize(
    ("a", "b", "verdict"), [(10, 20, "worse"), (20, 10, "better"), (10, 10.2, ""), (10, 9.8, ""), (0, 1, "")]
)
def test_a_function_is_faster_or_slower_by_its_median(a: float, b: float, verdict: str) -> None:
    runs = [replace(a_run(), functions=Functions((a_function("f", seconds),), 0)) for seconds in (a, b)]
    [function] = compare(*runs).functions
    assert (function.change, function.verdict) == (pytest.approx(b / a - 1) if a else None, verdict)


@pytest.mark.parametrize(
    ("a", "b", "change", "verdict"),
    [
        (0, 3, "new", "worse"),
        (3, 0, "gone", "better"),
        (2, 3, "more", "worse"),
        (3, 2, "fewer", "better"),
        (3, 3, "same", ""),
    ],
)
def test_failures_are_new_gone_more_or_fewer(a: int, b: int, change: str, verdict: str) -> None:
    runs = [replace(a_run(), failures=(a_failure("x", number),) if number else ()) for number in (a, b)]
    [failure] = compare(*runs).failures
    assert (failure.change, failure.verdict) == (change, verdict)


def test_a_change_is_told_in_words_beside_its_colour() -> None:
    a = replace(a_run(), facts=(RunFact("outcome", "Duration", "1 min", 60), RunFact("packages", "old", "1")))
    b = replace(a_run(), facts=(RunFact("outcome", "Duration", "2 min", 120),), failures=(a_failure("x", 1),))
    slower = Functions((a_function("f", 10),), 0), Functions((a_function("f", 15),), 0)
    page = compare_page(compare(replace(a, functions=slower[0]), replace(b, functions=slower[1]))).body
    text = bytes(page).decode()
    assert '<span class="delta worse">+1 min (+100%), worse</span>' in text.replace("\xa0", " ")
    assert '<span class="delta">- removed</span>' in text
    assert '<span class="delta worse">+50%, slower</span>' in text
    assert '<span class="delta worse">new</span>' in text


def test_secrets_in_runtime_environments_stay_masked() -> None:
    url = "https://me:hunter2@example.org/simple"
    facts = found(environment_facts([{"pip": {"packages": [url, f"x @ {url}"]}, "working_dir": url}]))
    assert "hunter2" not in str(facts)
    assert facts["runtime env", "working_dir"] == "https://me:<redacted>@example.org/simple"


def found(pairs: list[tuple[FactName, str]]) -> dict[FactName, str]:
    return {(fact.topic, fact.name): fact.value for fact in joined_facts(pairs)}


def a_job(entrypoint: str) -> JobRow:
    return JobRow("nightly", None, "SUCCEEDED", entrypoint, None, None, None)


def test_runs_are_named_by_paths() -> None:
    assert parse_run("ns/c/s") == RunRef("ns", "c", "s")
    assert parse_run("/ns/c/latest/job/with/slash") == RunRef("ns", "c", "latest", "job/with/slash")
    for wrong in ("", "a", "a/b", "a//c", "a/b/"):
        with pytest.raises(InvalidQuery, match="is no run"):
            parse_run(wrong)
