"""The page that says why a job or a session failed: the first cause on top, readable without any script. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from starlette.responses import HTMLResponse

from raykeeper.history.pages.html import page_response
from raykeeper.history.report.model import Cause, Evidence, FailureGroup, JobOutcome, Outcome, Report, Unknown

_VERDICTS = {
    Outcome.OK: "Nothing failed.",
    Outcome.FAILED: "Failed.",
    Outcome.WITH_FAILURES: "Succeeded, although attempts failed.",
    Outcome.STOPPED: "Stopped by its user.",
    Outcome.RUNNING: "Running; nothing has failed so far.",
}
_EVIDENCE_CHARS, _MESSAGE_CHARS = 1500, 6000  # fifty groups stay a page of some 200 kB


def report_page(report: Report) -> HTMLResponse:
    what = f"Job {report.job}" if report.job else f"Session {report.session}"
    body = "".join(
        [
            _heading(report, what),
            _first_cause(report.first_cause),
            _unknown(report.unknown),
            _jobs(report),
            _causes(report),
            "".join(_group(group, report) for group in report.groups),
            "</main>",
        ]
    )
    return page_response(f"Why: {what}", body)


def _heading(report: Report, what: str) -> str:
    root = "../" if report.job else "./"
    above = f' · <a href="{root}report">The whole session</a>' if report.job else ""
    counts = report.counts
    hidden = f", {counts.recovered} of them made good by a retry" if counts.recovered else ""
    return (
        f'<nav><a href="/">All sessions</a> · <a href="{root}">Ray dashboard</a>{above}</nav>'
        f"<main><h1>{escape(what)}</h1>"
        f'<p class="quiet">{escape(report.namespace)} / {escape(report.cluster)}, as of {_time(report.as_of)}</p>'
        f"<p><strong>{_VERDICTS[report.outcome]}</strong> "
        f"{counts.failures} of {counts.attempts} attempts failed{hidden}.</p>"
    )


def _first_cause(cause: Cause | None) -> str:
    if cause is None:
        return ""
    return (
        f'<section class="note"><h2>First cause</h2><p><strong>{escape(cause.title)}</strong> '
        f"({cause.sureness}{_at(cause.at)})</p>{_evidence(cause.evidence)}</section>"
    )


def _unknown(unknown: Iterable[Unknown]) -> str:
    rows = "".join(f"<li>{escape(one.what)}: {escape(one.text)}</li>" for one in unknown)
    return f"<h2>What is not known</h2><ul>{rows}</ul>" if rows else ""


def _jobs(report: Report) -> str:
    if not report.jobs:
        return ""
    rows = "".join(_job_row(job, is_linked=report.job is None) for job in report.jobs)
    head = "<tr><th>Job</th><th>Status</th><th>Started</th><th>Ended</th><th>Exit code</th></tr>"
    return f"<h2>Jobs</h2><table>{head}{rows}</table>"


def _job_row(job: JobOutcome, *, is_linked: bool) -> str:
    name = job.submission_id or job.job_id or ""
    shown = f'<a href="report/{escape(quote(name, safe=""))}">{escape(name)}</a>' if is_linked else escape(name)
    cells = (
        f'{shown}<br><span class="quiet">{escape(job.entrypoint)}</span>',
        escape(job.status),
        _time(job.started_at),
        _time(job.ended_at),
        "" if job.exit_code is None else str(job.exit_code),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _causes(report: Report) -> str:
    """What else went wrong, in the report's order."""
    rows = "".join(
        f"<li>{escape(cause.title)} <span class=quiet>({cause.sureness}{_at(cause.at)}, {cause.failures} failures"
        f"{', asked for' if cause.is_intended else ''})</span></li>"
        for cause in report.causes
    )
    return f"<h2>All causes</h2><ol>{rows}</ol>" if rows else ""


def _group(group: FailureGroup, report: Report) -> str:
    cause = report.causes[group.cause]
    functions = ", ".join(f"{function.name} ({function.failures})" for function in group.functions)
    recovered = f", {group.recovered} made good by a retry" if group.recovered else ""
    return (
        f'<section id="f-{group.fingerprint}"><h2>{escape(group.title)}</h2>'
        f"<p>{group.failures} times {escape(group.error_type)}{recovered} ({group.share:.2%} of all attempts), "
        f"{_time(group.first_at)} to {_time(group.last_at)}, on {len(group.nodes)} nodes, in {escape(functions)}.</p>"
        f"<p>Because: {escape(cause.title)} ({group.sureness})</p>{_example(group)}</section>"
    )


def _example(group: FailureGroup) -> str:
    example = group.example
    if example is None:
        return ""
    logs = "".join(
        f"<p class=quiet>{escape(log.file)}</p><pre>{escape(log.text[-_EVIDENCE_CHARS:])}</pre>" for log in example.logs
    )
    return (
        f"<details><summary>First: {escape(example.name)}, attempt {example.attempt_number}</summary>"
        f'<p class="quiet">task {escape(example.task_id)}, worker {escape(example.worker_id or "none")}, '
        f"node {escape(example.node_id or 'none')}</p>"
        f"<pre>{escape(example.message[-_MESSAGE_CHARS:])}</pre>{logs}</details>"
    )


def _evidence(evidence: Iterable[Evidence]) -> str:
    return "".join(
        f"<p class=quiet>{escape(fact.source)}{_at(fact.at)}</p><pre>{escape(fact.text[-_EVIDENCE_CHARS:])}</pre>"
        for fact in evidence
    )


def _at(time: datetime | None) -> str:
    return f", {_time(time)}" if time else ""


def _time(time: datetime | None) -> str:
    if time is None:
        return ""
    utc = time.astimezone(UTC)
    return f'<time datetime="{utc.isoformat()}">{utc:%Y-%m-%d %H:%M:%S} UTC</time>'
