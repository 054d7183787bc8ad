"""The failure report as a page, and in short for other pages: the root cause on top, readable without any script.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.evidence import (
    EVIDENCE_CHARS,
    address_links,
    chain_part,
    evidence_part,
    excerpt_part,
    log_href,
)
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
from raykeeper.history.report.model import (
    Address,
    Cause,
    Confidence,
    Counts,
    Excerpt,
    FailureGroup,
    JobOutcome,
    LogSlice,
    Outcome,
    Report,
    Unknown,
)
from raykeeper.history.report.shape import how_often
from raykeeper.history.report.unknowns import NOTHING_SEALED
from raykeeper.history.report.unstarted import NO_SESSION
from raykeeper.history.report.words import verdict
from raykeeper.history.store.session_state import DOUBTFUL
from raykeeper.history.text import counted, end_of
from raykeeper.history.urls import job_path, overview_path, report_path, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.masking import masked_text

REPORT_STYLES: tuple[str, ...] = ("report.css",)
"""Of pages with a report on them."""
GROUPS_SHOWN = 12
_PLACES_SHOWN = 8
_TITLE_CHARS = 300
_TONES: dict[Outcome, Tone] = {
    Outcome.OK: "good",
    Outcome.FAILED: "bad",
    Outcome.WITH_FAILURES: "warn",
    Outcome.STOPPED: "warn",
    Outcome.RUNNING: "busy",
    Outcome.FAILING: "warn",
}
_SURE: dict[Confidence, Tone] = {
    Confidence.CONFIRMED: "good",
    Confidence.LIKELY: "warn",
    Confidence.POSSIBLE: "quiet",
}
_HEADERS = ("Failure", "Times", "In", "First")


def why_failed(report: Report) -> Html:
    """Result, and why; the whole report is one click away."""
    path = report_path(SessionId(report.namespace, report.cluster, report.session), report.job)
    counts = report.counts
    said = f" {counts.failures:,} of {counts.attempts:,} attempts failed. " if counts.attempts else " "
    whole = tag("p", outcome_badge(report), said, link("Full report", path))
    return join([tag("h2", "Result"), whole, _answer(report, "h3", report.excerpts[:1]), _groups(report, path)])


def outcome_badge(report: Report) -> Html:
    if report.is_blank:
        return badge("nothing is recorded")
    return badge(DOUBTFUL if report.is_doubtful else report.outcome.value, _tone(report))


def _tone(report: Report) -> Tone:
    if report.is_blank:
        return "quiet"
    return "bad" if report.is_doubtful else _TONES[report.outcome]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _answer(report: Report, heading: str, excerpts: Iterable[Excerpt]) -> Html:
    """The headline, the lines that matter, and what followed."""
    headline, session = report.headline, _session(report)
    if headline is None:
        return EMPTY
    where = headline.where
    place = tag("code", f"{where.text}{f' in {where.function}' if where.function else ''}") if where else EMPTY
    sure = badge(headline.confidence.value, _SURE[headline.confidence])
    about = join([part for part in (place, headline.what) if part], " · ")
    cause = report.root_cause
    return tag(
        "section",
        tag("p", "Root cause", class_="eyebrow"),
        tag(heading, headline.text),
        tag("p", about, " ", sure, " ", quiet(headline.basis), _at(cause.at if cause else None)),
        tag("p", headline.then) if headline.then else EMPTY,
        *(excerpt_part(one, session, report.job or "") for one in excerpts),
        chain_part(report.steps, session, report.job or ""),
        _root_evidence(report, session),
        class_="panel bad cause",
    )


def _root_evidence(report: Report, session: SessionId) -> Html:
    """What the root cause rests on, in the words of Ray and Kubernetes: all frames of a traceback too."""
    cause = report.root_cause
    if cause is None or not cause.evidence:
        return EMPTY
    job = report.job or ""
    links = {str(one): one for fact in cause.evidence for one in address_links(fact.address, session, job)}
    shown = join(list(links.values())[:_PLACES_SHOWN], " · ")
    places = tag("p", quiet("Evidence "), shown, class_="places") if links else EMPTY
    said = tag("summary", "What Ray says, with all frames")
    return join([places, tag("details", said, evidence_part(cause.evidence, session, job))])


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


_JOB_HEADERS = ("Job", "Status", "Started", "Ended", "Exit code")
_NOT_YET = "Not started so far; nothing has failed."
_MESSAGE_CHARS = 6000  # fifty groups stay a page of some 200 kB


def report_page(report: Report) -> HTMLResponse:
    session = _session(report)
    what = f"Job {report.job}" if report.job else f"Session {report.session}"
    crumbs = session_crumbs(session)
    if report.job:
        crumbs = (*crumbs, Crumb(report.session, report_path(session)))
    return page_response(what, report_body(report), section="sessions", crumbs=crumbs, styles=REPORT_STYLES)


def report_body(report: Report) -> Html:
    """All of the report but its heading; other pages about the job show it too."""
    return join([_verdict(report), why_body(report), _jobs(report)])


def why_body(report: Report, seen: Html = EMPTY) -> Html:
    """The answer, whether it was seen before, what else failed, and what nobody knows."""
    lasting_first = sorted(report.groups, key=lambda group: group.failures <= group.recovered)
    parts = (
        _answer(report, "h2", report.excerpts),
        seen,
        _causes(report),
        *(_group(group, report) for group in lasting_first),
        _unknown(report.unknown),
    )
    return join(parts)


def _session(report: Report) -> SessionId:
    return SessionId(report.namespace, report.cluster, report.session)


def _verdict(report: Report) -> Html:
    words = _sentence(verdict(report))
    as_of = moment(report.as_of) if report.as_of > NOTHING_SEALED else "no event has arrived"
    about = [("Cluster", f"{report.namespace} / {report.cluster}"), ("As of", as_of)]
    if report.session == NO_SESSION:
        said = badge(_NOT_YET if report.outcome is Outcome.RUNNING else words, _tone(report))
    else:
        said = join([badge(words, _tone(report)), EMPTY if report.is_blank else _attempts(report.counts)])
        about.append(("Links", _elsewhere(report)))
    return join([tag("p", said, " ", copy_button("Copy link")), facts(about)])


def _elsewhere(report: Report) -> Html:
    session = _session(report)
    links = [link("Session", overview_path(session)), link("Ray dashboard", session_path(session))]
    if report.job:
        links.insert(0, link("Job", job_path(session, report.job)))
    return join(links, " · ")


def _attempts(counts: Counts) -> str:
    hidden = f", {counts.recovered:,} of them recovered by a retry" if counts.recovered else ""
    return f" {counts.failures:,} of {counts.attempts:,} attempts failed{hidden}."


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
    shown = link(name, job_path(linked_in, name)) if linked_in and name else name
    return (
        join([shown, tag("br"), quiet(job.entrypoint)]),
        status_badge(job.status),
        moment(job.started_at),
        moment(job.ended_at),
        "" if job.exit_code is None else str(job.exit_code),
    )


def _causes(report: Report) -> Html:
    """All that went wrong, in the report's order; one alone is the root cause."""
    rows = [tag("li", cause.title, " ", tag("span", *_aside(cause), class_="quiet")) for cause in report.causes]
    is_told = not rows or (len(rows) == 1 and report.headline)
    return EMPTY if is_told else join([tag("h2", "All causes"), tag("ol", *rows)])


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
        _example(group, report),
        id=f"f-{group.fingerprint}",
        class_="failure recovered" if group.failures <= group.recovered else "failure",
    )


def _example(group: FailureGroup, report: Report) -> Html:
    example = group.example
    if example is None:
        return EMPTY
    session, job = _session(report), report.job or ""
    where = Address(
        job=job,
        task_id=example.task_id,
        attempt_number=example.attempt_number,
        actor_id=example.actor_id or "",
        node_id=example.node_id or "",
    )
    logs = (
        join([tag("p", link(log.file, _slice_href(log, session))), tag("pre", end_of(log.text, EVIDENCE_CHARS))])
        for log in example.logs
    )
    return tag(
        "details",
        tag("summary", f"First: {example.name}, attempt {example.attempt_number}"),
        tag("p", join(address_links(where, session, job), " · ")),
        tag("pre", end_of(example.message, _MESSAGE_CHARS)),
        *logs,
    )


def _slice_href(log: LogSlice, session: SessionId) -> str:
    return log_href(Address(node_id=log.node_id, file=log.file, offset=log.offset, line=log.line), session)


def _at(time: datetime | None) -> Html:
    return join([", ", moment(time)]) if time else EMPTY
