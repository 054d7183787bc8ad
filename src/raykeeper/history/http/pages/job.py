"""The page of one job. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.report import why_failed
from raykeeper.history.http.pages.session import id_of, progress_note
from raykeeper.history.http.pages.task_tables import asked_section, functions_section, tasks_section
from raykeeper.history.http.pages.timeline_svg import Scale, axis, lanes
from raykeeper.history.http.pages.widgets import (
    duration,
    facts,
    link,
    moment,
    nothing,
    quiet,
    status_badge,
    table,
)
from raykeeper.history.overview.driver_log import HITS_LIMIT, DriverLog, LogLine, Passage
from raykeeper.history.overview.model import JobOverview, JobRow, Lane, LaneGroup, Mark, Timeline
from raykeeper.history.report.model import Report
from raykeeper.history.text import counted
from raykeeper.history.urls import compare_path, overview_path, session_path
from raykeeper.layout.keys import SessionId

_GROUPS: tuple[tuple[LaneGroup, str, str], ...] = (
    ("tasks", "Tasks", "This job has no tasks."),
    ("actors", "Actors", "This job has no actors."),
    ("nodes", "Nodes", "No node is known to have run this job."),
    ("kubernetes", "Kubernetes", "Kubernetes said nothing about this cluster while the job ran."),
)
_TOLD_LIMIT = 60  # rows of the table that tells what a picture shows
_ENVIRONMENT_CHARS = 4000
_FOLLOWED_LINES = 100


def job_page(overview: JobOverview, report: Report, log: DriverLog) -> HTMLResponse:
    session, job = id_of(overview.facts), overview.job
    body = join(
        [
            progress_note(overview.facts),
            _facts(overview, session),
            why_failed(report),
            _timeline(overview.timeline),
            _log(log, job, session),
            tasks_section(overview.counts, overview.tasks) if overview.counts.attempts else EMPTY,
            asked_section(overview.resources) if overview.resources.rows else EMPTY,
            functions_section(overview.functions) if overview.functions.rows else EMPTY,
        ]
    )
    crumbs = (*session_crumbs(session), Crumb(session.session, overview_path(session)))
    return page_response(f"Job {job.id}", body, section="jobs", crumbs=crumbs)


def _facts(overview: JobOverview, session: SessionId) -> Html:
    job = overview.job
    until = job.ended_at or overview.facts.as_of
    links = (
        link("Ray dashboard", f"{session_path(session)}#/jobs/{job.job_id or job.id}"),
        link("Session", overview_path(session)),
        link("Compare with another run", compare_path(f"{session}/{job.id}")),
    )
    metadata = ", ".join(f"{name}={value}" for name, value in sorted(job.metadata.items()))
    shown = facts(
        [
            ("Status", status_badge(job.status)),
            ("Started", moment(job.started_at)),
            ("Ended", moment(job.ended_at)),
            ("Took" if job.ended_at else "Runs for", duration(until - job.started_at) if job.started_at else ""),
            ("Entrypoint", tag("code", job.entrypoint) if job.entrypoint else ""),
            ("Job id", job.job_id or "no driver started"),
            ("Metadata", metadata),
            ("More", join(links, " · ")),
        ]
    )
    return join([shown, _environment(overview)])


def _environment(overview: JobOverview) -> Html:
    if not overview.runtime_env:
        return EMPTY
    text = json.dumps(overview.runtime_env, indent=2, sort_keys=True, ensure_ascii=False)
    return tag("details", tag("summary", "Runtime environment"), tag("pre", text[:_ENVIRONMENT_CHARS]))


def _timeline(timeline: Timeline) -> Html:
    scale = Scale(timeline.begin, timeline.end)
    parts: list[Html] = [tag("h2", "Timeline"), axis(scale, is_beside=True)]
    for group, title, empty in _GROUPS:
        rows = [lane for lane in timeline.lanes if lane.group == group]
        words = timeline.kubernetes if group == "kubernetes" and timeline.kubernetes else empty
        parts += [tag("h3", title), lanes(rows, scale) if rows else tag("p", quiet(words))]
        if left_out := timeline.left_out.get(group, 0):
            parts.append(tag("p", quiet(f"{left_out:,} more are not shown.")))
    return join([*parts, axis(scale, is_beside=True), _told(timeline.lanes)])


def _told(rows: Iterable[Lane]) -> Html:
    """The marks of the picture as a table: for who cannot point at them, and for what is too close together."""
    marks = sorted(((mark, lane) for lane in rows for mark in lane.marks), key=lambda found: found[0].at)
    if not marks:
        return EMPTY
    shown = [_mark_row(mark, lane) for mark, lane in marks[:_TOLD_LIMIT]]
    words = (
        f"Events on the timeline ({len(shown)} of {len(marks)})"
        if len(marks) > len(shown)
        else "Events on the timeline"
    )
    return tag(
        "details",
        tag("summary", words),
        table("Events on the timeline", ("What", "When", "Where"), shown, hides_caption=True),
    )


def _mark_row(mark: Mark, lane: Lane) -> tuple[str, ...]:
    return mark.title, moment(mark.at), lane.label


def _log(log: DriverLog, job: JobRow, session: SessionId) -> Html:
    heading = tag("h2", "Driver log", id="log")
    if log.missing:
        return join([heading, nothing(log.missing)])
    return join([heading, _search_form(log), _found(log), _passages(log), _log_links(log, job, session)])


def _search_form(log: DriverLog) -> Html:
    box = tag("label", "Search", tag("input", type="search", name="search", value=log.search, maxlength=200))
    return tag("form", box, tag("button", "Search"), action="#log", method="get", class_="filters", role="search")


def _found(log: DriverLog) -> Html:
    if not log.search:
        return tag("p", quiet(f"The last lines of {log.size_bytes:,} bytes."))
    first = f", of which the first {HITS_LIMIT} are shown" if log.hits > HITS_LIMIT else ""
    skipped = f" The first {log.skipped_bytes:,} bytes were not searched." if log.skipped_bytes else ""
    return tag("p", f"{counted(log.hits, 'line')} with “{log.search}”{first}.{skipped}", role="status")


def _passages(log: DriverLog) -> Html:
    if not log.passages:
        return nothing("No line of the log has that." if log.search else "The log is empty.")
    return join(_passage(passage) for passage in log.passages)


def _passage(passage: Passage) -> Html:
    return tag("pre", join((_line(line) for line in passage.lines), "\n"))


def _line(line: LogLine) -> Html:
    number = quiet(f"{line.number:>6} ") if line.number is not None else EMPTY
    return join([number, tag("mark", line.text) if line.is_hit else line.text])


def _log_links(log: DriverLog, job: JobRow, session: SessionId) -> Html:
    """The bytes themselves, as Ray's own API gives them."""
    where = {"node_id": log.node_id, "filename": log.file}
    root = f"{session_path(session)}api/v0/logs/"
    whole = urlencode({**where, "lines": -1, "download_filename": log.file.rpartition("/")[2]})
    links = [link("Download the whole log", f"{root}file?{whole}")]
    if job.ended_at is None:
        links.append(link("Follow it", f"{root}stream?{urlencode({**where, 'lines': _FOLLOWED_LINES})}"))
    return tag("p", join(links, " · "))
