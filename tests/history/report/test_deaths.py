"""Processes that died without a failed task: which are failures, what they are called, and how a session then went."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.deaths import Death
from raykeeper.history.report.input import ReportInput
from raykeeper.history.report.model import Confidence, JobOutcome, LogSlice, Outcome
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.shape import outcome_of
from raykeeper.times import to_ns

NOW = datetime(2026, 11, 17, 8, 0, tzinfo=UTC)
CRASH = "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) ..."
DEATH = Death(
    at_ns=to_ns(NOW),
    job_id="01000000",
    exit_type="SYSTEM_ERROR",
    exit_detail=CRASH,
    node_id="n1",
    worker_id="w1",
    pid=7,
    actor_id="a1",
    class_name="Cache",
)
NOTHING = ReportInput([])


def a_job(status: str, ended_at: datetime | None) -> JobOutcome:
    return JobOutcome("01000000", "nightly", status, None, None, 0, "python main.py", NOW, ended_at)


def title_of(death: Death, report_input: ReportInput = NOTHING) -> str:
    told = unasked_death(death, report_input)
    return told.title if told else ""


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("", "actor Cache died"),
        ("cache-eu", "actor cache-eu (Cache) died"),
        ("SERVE_REPLICA::chat#Model#qm0k", "replica qm0k of Ray Serve deployment Model of application chat died"),
        ("SERVE_REPLICA::Model#qm0k", "replica qm0k of Ray Serve deployment Model died"),
    ],
)
def test_the_dead_are_called_by_the_names_that_people_gave_them(name: str, who: str) -> None:
    assert title_of(replace(DEATH, name=name)) == who


def test_a_worker_that_was_no_actor_has_its_pid() -> None:
    assert title_of(replace(DEATH, actor_id="", class_name="")) == "a worker process (pid 7) died"


def test_last_words_are_in_the_title_and_rays_advice_is_not() -> None:
    told = unasked_death(replace(DEATH, logs=(LogSlice("n1", "worker-w1.err", "arena 7 is corrupt\n"),)), NOTHING)
    assert told is not None
    assert told.title == "actor Cache died, its last words: arena 7 is corrupt"
    assert told.confidence is Confidence.LIKELY
    assert [fact.text for fact in told.evidence] == [
        "worker-w1.err:\narena 7 is corrupt",
        "SYSTEM_ERROR: Worker unexpectedly exits with a connection error code 2. End of file.",
    ]


def test_what_ray_itself_knows_is_certain() -> None:
    told = unasked_death(replace(DEATH, exit_type="NODE_OUT_OF_MEMORY", node_ip="10.0.0.7"), NOTHING)
    assert told is not None
    assert (told.title, told.confidence) == (
        "actor Cache was killed by Ray to free memory on 10.0.0.7",
        Confidence.CONFIRMED,
    )


def test_a_constructor_that_raised_is_named_with_its_exception() -> None:
    said = "The actor died because of an error raised in its creation task, ray::Cache.__init__() (pid=7)\n"
    said += '  File "/app/main.py", line 3, in __init__\n    raise OSError("no disk")\nOSError: no disk\n'
    context = {"creationTaskFailureContext": {"formattedExceptionString": said}}
    death = replace(DEATH, exit_type="", exit_detail="", actor_death=context)
    assert title_of(death) == "actor Cache died because its constructor raised OSError: no disk"


def died(reason: str, words: str = "") -> dict[str, dict[str, str]]:
    return {"actorDiedErrorContext": {"reason": reason, "errorMessage": words}}


@pytest.mark.parametrize(
    "death",
    [
        *(replace(DEATH, actor_death=died(why)) for why in ("RAY_KILL", "OUT_OF_SCOPE", "REF_DELETED", "OWNER_DIED")),
        replace(DEATH, actor_death=died("WORKER_DIED", "Worker exit type: INTENDED_USER_EXIT Worker exit detail: x")),
        replace(DEATH, exit_detail="Worker exits because its job has finished"),
        replace(DEATH, name="_ray_internal_job_actor_nightly"),
        replace(DEATH, node_death="EXPECTED_TERMINATION"),
    ],
)
def test_what_somebody_asked_for_is_no_failure(death: Death) -> None:
    assert unasked_death(death, NOTHING) is None


def test_what_dies_after_its_job_is_no_failure_unless_it_is_detached() -> None:
    over = ReportInput([], [a_job("SUCCEEDED", NOW - timedelta(seconds=1))])
    assert title_of(DEATH, over) == ""
    assert title_of(replace(DEATH, is_detached=True), over) == "actor Cache died"


@pytest.mark.parametrize(
    ("jobs", "is_over", "outcome"),
    [
        ([a_job("SUCCEEDED", NOW + timedelta(minutes=1))], True, Outcome.WITH_FAILURES),
        ([a_job("RUNNING", None)], False, Outcome.FAILING),
        ([], False, Outcome.FAILING),
        ([], True, Outcome.FAILED),
    ],
)
def test_nothing_is_well_after_a_death(jobs: list[JobOutcome], is_over: bool, outcome: Outcome) -> None:
    again = replace(DEATH, worker_id="w2", at_ns=DEATH.at_ns + 1)
    explained = explain_all(ReportInput([], jobs, deaths=[DEATH, again]))
    [cause] = explained.causes
    assert (cause.rule, cause.deaths) == ("unasked_death", 2)
    assert outcome_of(explained, [], jobs, is_over=is_over) is outcome
