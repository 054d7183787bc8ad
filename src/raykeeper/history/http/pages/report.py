"""The failure report as a page, and in short for other pages: the root cause on top, readable without any script.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import (
    Tone,
    badge,
    copy_button,
    facts,
    link,
    moment,
    quiet,
    status_badge,
    table,
)
from raykeeper.history.masking import masked_text
from raykeeper.history.report.model import Cause, Counts, Evidence, FailureGroup, JobOutcome, Outcome, Report, Unknown
from raykeeper.history.report.shape import how_often
from raykeeper.history.report.unknowns import NOTHING_SEALED
from raykeeper.history.report.unstarted import NO_SESSION
from raykeeper.history.text import counted, end_of
from raykeeper.history.urls import job_path, overview_path, report_path, session_path
from raykeeper.layout.keys import SessionId

GROUPS_SHOWN = 12
_CAUSE_CHARS = 1200
_TITLE_CHARS = 300
_TONES: dict[Outcome, Tone] = {
    Outcome.OK: "good",
    Outcome.FAILED: "bad",
    Outcome.WITH_FAILURES: "warn",
    Outcome.STOPPED: "warn",
    Outcome.RUNNING: "busy",
    Outcome.FAILING: "warn",
}
_HEADERS = ("Failure", "Times", "In", "First")


def why_failed(report: Report) -> Html:
    """Result, and why; the whole report is one click away."""
    path = report_path(SessionId(report.namespace, report.cluster, report.session), report.job)
    counts = report.counts
    said = f" {counts.failures:,} of {counts.attempts:,} attempts failed. " if counts.attempts else " "
    shown = badge("nothing is recorded") if report.is_blank else badge(report.outcome.value, _TONES[report.outcome])
    whole = tag("p", shown, said, link("Full report", path))
    return join([tag("h2", "Result"), whole, _short_cause(report.root_cause), _groups(report, path)])


def _short_cause(cause: Cause | None) -> Html:
    if cause is None:
        return EMPTY
    at = join([", ", moment(cause.at)]) if cause.at else EMPTY
    evidence = [tag("pre", end_of(masked_text(fact.text), _CAUSE_CHARS)) for fact in cause.evidence[:1]]
    title = tag(
        "p",
        tag("strong", masked_text(cause.title)[:_TITLE_CHARS]),
        " ",
        tag("span", "(", cause.confidence.value, at, ")"),
    )
    return tag("section", tag("h3", "Root cause"), title, *evidence, class_="panel bad")


def _groups(report: Report, path: str) -> Html:
    if not report.groups:
        return EMPTY
    shown = [_group_row(group, path) for group in report.groups[:GROUPS_SHOWN]]
    rest = len(report.groups) - len(shown)
    more = tag("p", quiet(f"{rest} more kinds of failure are in the whole report.")) if rest > 0 else EMPTY
    return join([table("Kinds of failure", _HEADERS, shown, numbers=("Times",)), more])


def _group_row(group: FailureGroup, path: str) -> tuple[str, ...]:
    functions = ", ".join(function.name for function in group.functions[:3])
    more = f" and {len(group.functions) - 3} more" if len(group.functions) > 3 else ""
    return (
        link(masked_text(group.title)[:_TITLE_CHARS], f"{path}#f-{group.fingerprint}"),
        f"{group.failures:,}",
        functions + more,
        moment(group.first_at),
    )


_VERDICTS: dict[Outcome, tuple[str, Tone]] = {
    Outcome.OK: ("Nothing failed.", "good"),
    Outcome.FAILED: ("Failed.", "bad"),
    Outcome.WITH_FAILURES: ("Succeeded with failures.", "warn"),
    Outcome.STOPPED: ("Stopped by its user.", "warn"),
    Outcome.RUNNING: ("Running; nothing has failed so far.", "busy"),
    Outcome.FAILING: ("Running with failures.", "warn"),
}
_JOB_HEADERS = ("Job", "Status", "Started", "Ended", "Exit code")
_RECOVERED = "Succeeded: every failure was recovered by a retry."
_NOTHING_RAN = "Nothing is recorded that could have failed."
_NOT_YET = "Not started so far; nothing has failed."
_EVIDENCE_CHARS, _MESSAGE_CHARS = 1500, 6000  # fifty groups stay a page of some 200 kB


def report_page(report: Report) -> HTMLResponse:
    session = _session(report)
    what = f"Job {report.job}" if report.job else f"Session {report.session}"
    crumbs = session_crumbs(session)
    if report.job:
        crumbs = (*crumbs, Crumb(report.session, report_path(session)))
    return page_response(what, report_body(report), section="sessions", crumbs=crumbs)


def report_body(report: Report) -> Html:
    """All of the report but its heading; other pages about the job show it too."""
    groups = (_group(group, report) for group in report.groups)
    parts = (
        _verdict(report),
        _root_cause(report.root_cause),
        _unknown(report.unknown),
        _jobs(report),
        _causes(report),
    )
    return join([*parts, *groups])


def _session(report: Report) -> SessionId:
    return SessionId(report.namespace, report.cluster, report.session)


def _verdict(report: Report) -> Html:
    words, tone = _VERDICTS[report.outcome]
    words = _RECOVERED if report.is_recovered else words
    as_of = moment(report.as_of) if report.as_of > NOTHING_SEALED else "no event has arrived"
    about = [("Cluster", f"{report.namespace} / {report.cluster}"), ("As of", as_of)]
    if report.session == NO_SESSION:
        said = badge(_NOT_YET if report.outcome is Outcome.RUNNING else words, tone)
    else:
        said = badge(_NOTHING_RAN, "quiet") if report.is_blank else join([badge(words, tone), _attempts(report.counts)])
        about.append(("Links", _elsewhere(report)))
    return join([tag("p", said, " ", copy_button("Copy link")), facts(about)])


def _elsewhere(report: Report) -> Html:
    session = _session(report)
    links = [link("Session", overview_path(session)), link("Ray dashboard", session_path(session))]
    if report.job:
        links.insert(0, link("Timeline and log", job_path(session, report.job)))
    return join(links, " · ")


def _attempts(counts: Counts) -> str:
    hidden = f", {counts.recovered:,} of them recovered by a retry" if counts.recovered else ""
    return f" {counts.failures:,} of {counts.attempts:,} attempts failed{hidden}."


def _root_cause(cause: Cause | None) -> Html:
    if cause is None:
        return EMPTY
    said = tag("p", tag("strong", cause.title), " (", _confidence(cause), ")")
    return tag("section", tag("h2", "Root cause"), said, _evidence(cause.evidence), class_="panel bad")


def _confidence(cause: Cause) -> Html:
    return join([cause.confidence, _at(cause.at)])


def _unknown(unknown: Iterable[Unknown]) -> Html:
    rows = [tag("li", f"{one.what}: {one.text}") for one in unknown]
    return join([tag("h2", "What is not known"), tag("ul", *rows)]) if rows else EMPTY


def _jobs(report: Report) -> Html:
    if not report.jobs:
        return EMPTY
    rows = [_job_row(job, None if report.job else _session(report)) for job in report.jobs]
    shown = table("Jobs", _JOB_HEADERS, rows, hides_caption=True, numbers=_JOB_HEADERS[-1:])
    return join([tag("h2", "Jobs"), shown])


def _job_row(job: JobOutcome, linked_in: SessionId | None) -> tuple[str, ...]:
    name = job.submission_id or job.job_id or ""
    shown = link(name, report_path(linked_in, name)) if linked_in and name else name
    return (
        join([shown, tag("br"), quiet(job.entrypoint)]),
        status_badge(job.status),
        moment(job.started_at),
        moment(job.ended_at),
        "" if job.exit_code is None else str(job.exit_code),
    )


def _causes(report: Report) -> Html:
    """What else went wrong, in the report's order."""
    rows = [tag("li", cause.title, " ", tag("span", *_aside(cause), class_="quiet")) for cause in report.causes]
    return join([tag("h2", "All causes"), tag("ol", *rows)]) if rows else EMPTY


def _aside(cause: Cause) -> tuple[str, ...]:
    asked_for = ", asked for" if cause.is_intended else ""
    return "(", _confidence(cause), f"{how_often(cause)}{asked_for})"


def _group(group: FailureGroup, report: Report) -> Html:
    functions = ", ".join(f"{function.name} ({function.failures:,})" for function in group.functions)
    recovered = f", {group.recovered:,} recovered by a retry" if group.recovered else ""
    how_often = f"{counted(group.failures, 'time')} {group.error_type}{recovered} ({group.share:.2%} of all attempts), "
    where = f", on {counted(len(group.nodes), 'node')}, in {functions}."
    return tag(
        "section",
        tag("h2", group.title),
        tag("p", how_often, moment(group.first_at), " to ", moment(group.last_at), where),
        tag("p", f"Because: {report.causes[group.cause].title} ({group.confidence})"),
        _example(group),
        id=f"f-{group.fingerprint}",
    )


def _example(group: FailureGroup) -> Html:
    example = group.example
    if example is None:
        return EMPTY
    where = f"task {example.task_id}, worker {example.worker_id or 'none'}, node {example.node_id or 'none'}"
    logs = (join([tag("p", quiet(log.file)), tag("pre", end_of(log.text, _EVIDENCE_CHARS))]) for log in example.logs)
    return tag(
        "details",
        tag("summary", f"First: {example.name}, attempt {example.attempt_number}"),
        tag("p", quiet(where)),
        tag("pre", end_of(example.message, _MESSAGE_CHARS)),
        *logs,
    )


def _evidence(evidence: Iterable[Evidence]) -> Html:
    return join(
        join([tag("p", fact.source, _at(fact.at), class_="quiet"), tag("pre", end_of(fact.text, _EVIDENCE_CHARS))])
        for fact in evidence
    )


def _at(time: datetime | None) -> Html:
    return join([", ", moment(time)]) if time else EMPTY
