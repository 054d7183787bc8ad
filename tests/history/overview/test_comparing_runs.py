"""Two runs side by side: what differs, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.overview import parse_run
from raykeeper.history.overview.compare import (
    FUNCTIONS_LIMIT,
    FactName,
    Run,
    RunFact,
    compare,
    environment_facts,
    flattened,
)
from raykeeper.history.overview.model import FunctionRow, Functions, RunRef
from raykeeper.history.report.model import Confidence, FailureGroup


def a_run(**facts: str) -> Run:
    """Facts by name, all of one topic."""
    known = tuple(RunFact("versions", name, value) for name, value in facts.items())
    return Run(RunRef("n", "c", "s"), "succeeded", None, None, known, Functions((), 0), ())


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
    environment = {"pip": ["a==1", "b"], "env_vars": {"A": "<redacted>"}, "config": {"eager_install": True}}
    assert flattened(environment) == [
        ("pip", '["a==1", "b"]'),
        ("env_vars.A", "<redacted>"),
        ("config.eager_install", "true"),
    ]
    facts = environment_facts([environment, {"pip": ["a==2"]}, None])
    assert facts[name("pip")] == '["a==1", "b"] | ["a==2"]'


def test_secrets_in_runtime_environments_stay_masked() -> None:
    url = "https://me:hunter2@example.org/simple"
    facts: dict[FactName, Any] = environment_facts([{"pip": {"packages": [url]}, "working_dir": url}])
    assert "hunter2" not in str(facts)
    assert facts[name("working_dir")] == "https://me:<redacted>@example.org/simple"


def name(path: str) -> FactName:
    return "runtime env", path


def test_runs_are_named_by_paths() -> None:
    assert parse_run("ns/c/s") == RunRef("ns", "c", "s")
    assert parse_run("/ns/c/latest/job/with/slash") == RunRef("ns", "c", "latest", "job/with/slash")
    for wrong in ("", "a", "a/b", "a//c", "a/b/"):
        with pytest.raises(InvalidQuery, match="is no run"):
            parse_run(wrong)
