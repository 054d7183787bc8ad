"""Logs and errors of the kinds that people meet: the headline is what a person would say.

They are written by hand, after what the programs and libraries themselves write: `judged_logs.yaml`. Recordings of
whole runs are judged elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from raykeeper.history.entities.job import Job
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.fingerprint import headline
from raykeeper.history.report.input import Ending, ReportInput
from raykeeper.history.report.last_words import last_words
from raykeeper.history.report.model import CodeLocation, Headline, LogSlice
from raykeeper.history.report.rules.drivers import told_by_message
from raykeeper.history.report.rules.start import environment_words
from raykeeper.history.report.shape import headline_of, job_outcome
from raykeeper.history.report.tracebacks import user_location
from support.report_scene import a_job

VENV = "/venv/lib/python3.11/site-packages"
JUDGED = yaml.safe_load(Path(__file__).with_name("judged_logs.yaml").read_text().replace("{venv}", VENV))


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in JUDGED[kind]]


def message_of(case: dict[str, Any]) -> str:
    """As Ray puts the driver's last lines into the message of a job."""
    code = case.get("code", 1)
    heading = f"Job entrypoint command failed with exit code {code}, last available logs (truncated to 20,000 chars):"
    return f"{heading}\n{case['log']}"


def told_of(case: dict[str, Any]) -> Headline:
    job = a_job("FAILED", driver_exit_code=case.get("code", 1), message=message_of(case))
    found = headline_of(explain_all(ReportInput([], (job_outcome(Job(job)),), Ending())))
    assert found is not None
    return found


def text_of(where: CodeLocation | None) -> str:
    return where.text if where else ""


@pytest.mark.parametrize("case", cases("drivers"))
def test_the_headline_on_a_driver_is_what_a_person_would_say(case: dict[str, Any]) -> None:
    told = told_of(case)
    assert (told.text, text_of(told.where)) == (case["headline"], case.get("where", ""))
    assert told.confidence == case.get("confidence", told.confidence)
    assert case.get("then", "") in told.then


@pytest.mark.parametrize("case", [case for case in cases("drivers") if "where" in case.values[0]])
def test_a_list_of_jobs_says_the_same_of_a_driver_before_its_log_is_read(case: dict[str, Any]) -> None:
    assert told_by_message(message_of(case)) == case["headline"]


@pytest.mark.parametrize("case", cases("errors"))
def test_the_error_of_a_task_is_the_one_that_its_user_means(case: dict[str, Any]) -> None:
    found = (headline(case["message"]), text_of(user_location(case["message"])))
    assert found == (case["headline"], case.get("where", ""))


@pytest.mark.parametrize("case", cases("workers"))
def test_a_worker_that_died_is_explained_by_its_last_words(case: dict[str, Any]) -> None:
    found = last_words([LogSlice("node", "worker-1.err", case["log"])])
    assert (found.text if found.is_error else "", text_of(found.where)) == (case["headline"], case.get("where", ""))


@pytest.mark.parametrize("case", cases("environments"))
def test_an_environment_that_could_not_be_made_is_explained_by_what_went_wrong(case: dict[str, Any]) -> None:
    assert environment_words(case["message"]) == case["headline"]
