"""The recorded run's failures are known: the report names each one's cause, as JSON, as a page and in the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from rich.console import Console
from starlette.types import ASGIApp

from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.report.model import Cause, Outcome, Report
from support.asking import ask
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.raycapture import SESSION

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"

FIRST_CAUSES = {
    "golden-fail": (Outcome.FAILED, "failed_entrypoint", "exited with code 7"),
    "golden-badenv": (
        Outcome.FAILED,
        "failed_job_environment",
        "No matching distribution found for no-such-package-xyz-123",
    ),
    "golden-long": (Outcome.STOPPED, "ended_with_job", "stopped by its user"),
    "golden-main": (Outcome.WITH_FAILURES, "raised_exception", "fail_app raised ValueError: boom"),
}

CAUSES_OF_MAIN = {
    "fail_app": "raised_exception",
    "fail_exit": "crashed_worker",
    "flaky": "raised_exception",
    "bad_env": "failed_environment",
    "Counter.fail": "raised_exception",
    "Counter.die": "crashed_worker",
    "InitFails.__init__": "raised_exception",
    "InitFails.x": "raised_exception",
    "Counter.__init__": "never_scheduled",
}
"""By function. `Counter.inc` failed in two ways, and is asked for apart."""


@asynccontextmanager
async def server(moments: Moments) -> AsyncIterator[ASGIApp]:
    async with golden_server(moments["final"]) as app:
        yield app


async def report_on(app: ASGIApp, job: str = "") -> Report:
    path = f"/jobs/{job}/report" if job else "/report"
    answered = await ask(app, f"{PREFIX}/api/keeper/v1{path}")
    assert answered.status == 200, answered.text
    return msgspec.json.decode(answered.content, type=Report)


@pytest.mark.parametrize("job", FIRST_CAUSES)
async def test_the_root_cause_of_each_job_is_the_true_one(job: str, ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app, job)
    outcome, rule, title = FIRST_CAUSES[job]
    assert report.root_cause is not None
    assert (report.outcome, report.root_cause.rule) == (outcome, rule)
    assert title in report.root_cause.title
    assert report.root_cause.evidence


@pytest.mark.parametrize("job", ["golden-train", "golden-serve", "04000000"])
async def test_jobs_that_went_well_say_so(job: str, ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app, job)
    assert (report.outcome, report.root_cause, report.groups) == (Outcome.OK, None, ())


async def test_every_failure_of_the_main_job_has_its_cause(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app, "golden-main")
    causes: dict[str, set[str]] = {}
    for group in report.groups:
        for function in group.functions:
            causes.setdefault(function.name, set()).add(cause_of(report, group.cause).rule)
    assert causes.pop("Counter.inc") == {"ended_actor", "crashed_worker"}
    assert causes == {function: {rule} for function, rule in CAUSES_OF_MAIN.items()}
    assert (report.counts.failures, report.counts.recovered) == (13, 2)
    assert sum(group.failures for group in report.groups) == 13


def cause_of(report: Report, place: int) -> Cause:
    return report.causes[place]


async def test_examples_have_the_lines_that_the_attempt_wrote(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app, "golden-main")
    logs = {
        group.functions[0].name: "".join(log.text for log in group.example.logs)
        for group in report.groups
        if group.example
    }
    assert logs["flaky"] == "flaky attempt 0\n"
    assert "about to fail" in logs["fail_app"]
    assert "init failed" in logs["InitFails.__init__"]


async def test_the_whole_session_puts_what_ended_jobs_first(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app)
    assert [cause.rule for cause in report.causes[:2]] == ["failed_entrypoint", "failed_job_environment"]
    assert [cause.rule for cause in report.causes[-3:]] == ["ended_with_job", "raised_exception", "ended_actor"]
    assert report.outcome is Outcome.FAILED
    assert {job.submission_id or job.job_id: job.status for job in report.jobs}["golden-badenv"] == "FAILED"


async def test_a_job_that_does_not_exist_is_said_so(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        answered = await ask(app, f"{PREFIX}/api/keeper/v1/jobs/nope/report")
        page = await ask(app, f"{PREFIX}/report/nope")
    assert (answered.status, page.status) == (404, 404)
    assert "no job nope" in answered.body["error"]


async def test_the_page_needs_no_script_and_escapes_what_sessions_say(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        page = await ask(app, f"{PREFIX}/report")
        of_job = await ask(app, f"{PREFIX}/report/golden-main")
    assert page.headers["content-type"].startswith("text/html")
    ours = r'<script (?:type="module" )?src="/keeper/static/[^"]*">'
    assert re.findall(r"<script[^>]*>", page.text) == re.findall(ours, page.text)
    assert "the driver left with exit code 7" in page.text.partition("All causes")[0]
    assert f'href="{PREFIX}/job/golden-main"' in page.text
    assert "&lt;job_main.InitFails object at" in of_job.text
    assert "<job_main" not in of_job.text
    assert len(page.content) < 200_000
    assert re.findall(r"<h1>(.*?)</h1>", of_job.text) == ["job_main.py"]


async def test_the_terminal_shows_plain_lines_where_it_is_none(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        report = await report_on(app, "golden-main")
    printed = io.StringIO()
    ReportScreen(Console(file=printed, highlight=False, soft_wrap=True)).show(report)
    text = printed.getvalue()
    assert "\x1b" not in text
    assert text.startswith("succeeded with failures: ")
    assert text.index("ValueError: boom") < text.index("task fail_app") < text.index("[confirmed]")
    coloured = io.StringIO()
    ReportScreen(Console(file=coloured, force_terminal=True, color_system="standard")).show(report)
    assert "\x1b[" in coloured.getvalue()
