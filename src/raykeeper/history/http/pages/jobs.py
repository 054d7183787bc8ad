"""The page of all jobs of all clusters, newest first. Pure, but for the request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from raykeeper.history.http.keeper_api.jobs import JobsAnswer, JobsQuery, ListedJob, jobs_answer, jobs_found
from raykeeper.history.http.pages.forms import (
    Given,
    choice,
    filter_form,
    given_parameters,
    link_with,
    page_query,
    text_field,
)
from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import Html, join, tag
from raykeeper.history.http.pages.widgets import (
    badge,
    duration,
    link,
    moment,
    note,
    nothing,
    pager,
    quiet,
    status_badge,
    table,
)
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.text import counted
from raykeeper.history.urls import job_path, overview_path, report_path
from raykeeper.layout.keys import SessionId
from raykeeper.rayevents.states import JobStatus

PATH = "/jobs"
_HEADERS = ("Job", "Cluster", "Status", "Started", "Took", "Tasks", "Why it failed")
_STATUSES = ("", *get_args(JobStatus))
_ENTRYPOINT_CHARS = 120
_PARTIAL = (Outcome.WITH_FAILURES.value, Outcome.FAILING.value)


async def list_all_jobs(request: Request, history: History) -> Response:
    given = given_parameters(request.query_params.multi_items(), JobsQuery)
    return _jobs_page(jobs_answer(await jobs_found(history, page_query(given, JobsQuery))), given)


def _jobs_page(found: JobsAnswer, given: Given) -> HTMLResponse:
    following = link_with(PATH, given, after=found.next) if found.next else None
    first = link_with(PATH, given, after="") if "after" in given else None
    body = [
        filter_form(PATH, "Which jobs", _fields(given), given),
        *map(note, _notes(found)),
        table("Jobs", _HEADERS, map(_row, found.jobs), name="jobs", hides_caption=True, numbers=("Took", "Tasks"))
        if found.jobs
        else _nothing(found, given),
        pager(first=first, following=following),
    ]
    return page_response("Jobs of all clusters", join(body), section="jobs")


def _fields(given: Given) -> tuple[Html, ...]:
    statuses = {status: status.lower() or "any" for status in _STATUSES}
    return (
        text_field("Words", "text", given, "search"),
        text_field("Namespace", "namespace", given),
        text_field("Cluster", "cluster", given),
        text_field("Owner", "owner", given),
        choice("Status", "status", given, statuses),
        text_field("Session from", "since", given, "date"),
        text_field("Session until", "until", given, "date"),
    )


def _notes(found: JobsAnswer) -> Iterator[str]:
    if found.unread:
        yield f"{counted(found.unread, 'session')} not read yet: their jobs are missing here. Some are being read now."
    if found.left_out:
        yield f"{counted(found.left_out, 'older job')} of clusters that ran very many: see those sessions' own pages."
    if found.unreadable:
        yield f"{found.unreadable} of the catalog's entries could not be read: their jobs are missing here."


def _nothing(found: JobsAnswer, given: Given) -> Html:
    if found.next:
        return nothing("None among the newest sessions; older ones may have some.")
    if given:
        return nothing("There is no such job.")
    return nothing("There are no jobs yet. They appear here within a minute of their start.")


def _row(job: ListedJob) -> tuple[str, ...]:
    session = SessionId(job.namespace, job.cluster, job.session)
    name = job.submission_id or job.job_id or ""
    took = duration(job.ended_at - job.started_at) if job.ended_at and job.started_at else ""
    return (
        join([link(name, job_path(session, name)) if name else "(not started)", *map(_below, _details(job))]),
        join([link(job.cluster, overview_path(session)), _below(job.namespace)]),
        _status(job),
        moment(job.started_at),
        took,
        _tasks(job),
        _failure(job, session, name),
    )


def _status(job: ListedJob) -> Html:
    """In Ray's words, and in ours where something failed in a job that Ray calls a success."""
    status = status_badge(job.status)
    return join([status, " ", badge(job.outcome, "warn")]) if job.outcome in _PARTIAL else status


def _failure(job: ListedJob, session: SessionId, name: str) -> Html | str:
    first_look = quiet(" (first look)") if job.is_provisional else ""
    return (
        join([job.failure, first_look, " ", link("why", report_path(session, name))])
        if job.failure and name
        else job.failure
    )


def _details(job: ListedJob) -> Iterator[str]:
    """What its user said about it."""
    if job.entrypoint:
        cut = job.entrypoint if len(job.entrypoint) <= _ENTRYPOINT_CHARS else f"{job.entrypoint[:_ENTRYPOINT_CHARS]}…"
        yield cut
    if job.metadata:
        yield ", ".join(f"{name}={value}" for name, value in job.metadata.items())


def _below(words: str) -> Html:
    return join([tag("br"), quiet(words)])


def _tasks(job: ListedJob) -> str:
    """How many there were, and how many of them failed."""
    if not job.tasks:
        return ""
    failed = job.tasks.get("FAILED", 0)
    return f"{sum(job.tasks.values()):,}" + (f", {failed:,} failed" if failed else "")
