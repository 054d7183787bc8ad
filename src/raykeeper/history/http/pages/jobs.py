"""The start page: the jobs of all clusters, how each went and why, and how the last day went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, get_args

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.errors import RaykeeperError
from raykeeper.history.entities.job import script_name
from raykeeper.history.failures.index import failures_within
from raykeeper.history.failures.kinds import FailureState
from raykeeper.history.http.keeper_api.jobs import JobsAnswer, JobsQuery, ListedJob, jobs_answer, jobs_found
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.keeper_api.sessions import SessionsQuery
from raykeeper.history.http.pages.forms import (
    Given,
    chips,
    choice,
    filter_form,
    given_parameters,
    link_with,
    page_query,
    text_field,
)
from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.sessions import OPEN_NOTE, SESSIONS_PATH, first_steps, unstarted_section
from raykeeper.history.http.pages.widgets import (
    ago,
    duration,
    link,
    note,
    nothing,
    outcome_badge,
    pager,
    quiet,
    task_bar,
)
from raykeeper.history.jobs_list.counts import JobCounts, counts_within
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.text import counted
from raykeeper.history.urls import job_path, overview_path, report_path
from raykeeper.layout.keys import SessionId
from raykeeper.rayevents.states import JobStatus

PATH = "/jobs"
_STATUSES = ("", *get_args(JobStatus))
_CHIPS = {"": "All", "failed": "Failed", "with failures": "With failures", "running": "Running"}
_COUNTS_SECONDS = 0.02  # of the 100 ms that the page may take; counts that come later are on the next look
_METADATA_CHARS = 120
_INTERPRETERS = ("python", "bash", "sh")
_FIRST_LOOK = "The job's own last line; its report is not made yet"
_AT_WORK = (Outcome.RUNNING.value, Outcome.FAILING.value)

Sort = Literal["started", "ran", "tasks"]
_SORTED_HEADS: tuple[tuple[Sort, str], ...] = (("tasks", "Tasks"), ("ran", "Ran"), ("started", "Started"))


class JobsPageQuery(JobsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the list is asked for, and how the page shows it."""

    sort: Annotated[Sort, Meta(description="Which jobs of the page come first.")] = "started"


async def get_home(request: Request, history: History) -> Response:
    """All jobs. The list of sessions was here once: an address with its filters still leads to it."""
    if given_parameters(request.query_params.multi_items(), SessionsQuery):
        return RedirectResponse(f"{SESSIONS_PATH}?{request.url.query}", 302)
    return await list_all_jobs(request, history)


async def list_all_jobs(request: Request, history: History) -> Response:
    given = given_parameters(request.query_params.multi_items(), JobsPageQuery)
    query = page_query(given, JobsPageQuery)
    found, counts, new_kinds = await asyncio.gather(jobs_found(history, query), _counts(history), _new_kinds(history))
    unstarted = await unstarted_section(history) if not given else EMPTY
    answer = jobs_answer(found)
    body = [
        note(OPEN_NOTE) if history.access.is_undecided else EMPTY,
        tag("div", _cards(counts, new_kinds), id="counts", data_fresh=True),
        chips("Which jobs", PATH, given, "outcome", _CHIPS),
        _filters(given, answer.jobs),
        tag(
            "div",
            *map(note, _notes(answer)),
            _list(answer, query, given, history.clock.now()),
            id="list",
            data_fresh=True,
            data_live=f"{PREFIX}{link_with(PATH, _api_parameters(given))}",
        ),
        unstarted,
    ]
    return page_response("Jobs", join(body), section="jobs", scripts=["live.js"])


def _api_parameters(given: Given) -> Given:
    return {name: text for name, text in given.items() if name not in ("sort", "since", "until")}


async def _counts(history: History) -> JobCounts:
    try:
        return await counts_within(history, _COUNTS_SECONDS)
    except RaykeeperError:
        return JobCounts()


async def _new_kinds(history: History) -> int | None:
    """Kinds of failure first seen in the last day that the list of them shows; None where that is not known yet."""
    try:
        known = await failures_within(history, _COUNTS_SECONDS)
    except RaykeeperError:
        return None
    muted = {fingerprint for fingerprint, said in known.notes.items() if said.is_muted}
    new = (kind for kind in known.kinds if kind.state is FailureState.NEW and kind.fingerprint not in muted)
    return sum(1 for _ in new) if known.is_known else None


def _cards(counts: JobCounts, new_kinds: int | None) -> Html:
    """The last day in numbers, each the way to those jobs."""
    failing = f"{counts.running_with_failures:,} with failures" if counts.running_with_failures else ""
    cards = (
        ("Jobs, last 24 h", counts.jobs, "", "", ""),
        ("Failed", counts.failed, "", "failed", "bad" if counts.failed else ""),
        ("Succeeded with failures", counts.with_failures, "", "with failures", "warn" if counts.with_failures else ""),
        ("Running now", counts.running, failing, "running", "busy" if counts.running else ""),
    )
    is_waiting = new_kinds is None or not counts.is_known
    new = tag("strong", "…" if new_kinds is None else f"{new_kinds:,}")
    kinds = tag("li", tag("a", tag("span", "New kinds of failure"), new, href="/failures?state=new", class_="card"))
    return tag(
        "ul",
        *(_card(*card, counts) for card in cards),
        kinds,
        class_="cards",
        data_unknown=is_waiting,
    )


def _card(words: str, number: int, aside: str, outcome: str, tone: str, counts: JobCounts) -> Html:
    number_in_words = f"{number:,}" if counts.is_complete else f"at least {number:,}"
    shown = tag("strong", number_in_words if counts.is_known else "…", class_=tone or None)
    return tag(
        "li",
        tag("a", tag("span", words), shown, quiet(aside), href=link_with(PATH, {"outcome": outcome}), class_="card"),
    )


def _filters(given: Given, jobs: Sequence[ListedJob]) -> Html:
    """One row; what is asked for more rarely is behind a fold, open if it is in use."""
    statuses = {status: status.lower() or "any" for status in _STATUSES}
    seldom = (
        text_field("Owner", "owner", given),
        choice("Ray status", "status", given, statuses),
        text_field("Session from", "since", given, "date"),
        text_field("Session until", "until", given, "date"),
    )
    is_used = any(name in given for name in ("owner", "status", "since", "until"))
    fields = (
        text_field("Words", "text", given, "search", placeholder="name, entry point, error …"),
        text_field("Namespace", "namespace", given, options=sorted({job.namespace for job in jobs})),
        text_field("Cluster", "cluster", given, options=sorted({job.cluster for job in jobs})),
        tag("details", tag("summary", "More"), *seldom, open=is_used),
    )
    return filter_form(PATH, "Filter jobs", fields, given, keeps=("outcome", "sort"))


def _notes(found: JobsAnswer) -> Iterator[str]:
    if found.unread:
        yield f"{counted(found.unread, 'session')} not read yet: their jobs are missing here. Some are being read now."
    if found.left_out:
        yield f"{counted(found.left_out, 'older job')} of clusters that ran very many: see those sessions' own pages."
    if found.unreadable:
        yield f"{found.unreadable} of the catalog's entries could not be read: their jobs are missing here."


def _list(found: JobsAnswer, query: JobsPageQuery, given: Given, now: datetime) -> Html:
    following = link_with(PATH, given, after=found.next) if found.next else None
    first = link_with(PATH, given, after="") if "after" in given else None
    shown = (
        _table(_sorted(found.jobs, query.sort, now), query.sort, given, now) if found.jobs else _nothing(found, given)
    )
    return join([shown, pager(first=first, following=following)])


def _nothing(found: JobsAnswer, given: Given) -> Html:
    if found.next:
        return nothing("None among the newest sessions; older ones may have some.")
    if given:
        return nothing("There is no such job.")
    return first_steps("There are no jobs yet. They appear here within a minute of their start.")


def _sorted(jobs: Sequence[ListedJob], sort: Sort, now: datetime) -> Sequence[ListedJob]:
    """The jobs of the page; the list itself is by their start."""
    keys: dict[Sort, Callable[[ListedJob], tuple[float, float]]] = {
        "ran": lambda job: ((_ran(job, now) or timedelta()).total_seconds(), 0),
        "tasks": lambda job: (job.tasks.get("FAILED", 0), sum(job.tasks.values())),
    }
    return sorted(jobs, key=keys[sort], reverse=True) if sort in keys else jobs


def _table(jobs: Sequence[ListedJob], sort: Sort, given: Given, now: datetime) -> Html:
    heads = [tag("th", words, scope="col") for words in ("Outcome", "Job", "Why")]
    heads += [_sort_head(by, words, sort, given) for by, words in _SORTED_HEADS]
    rows = (_row(job, now) for job in jobs)
    whole = tag("table", tag("caption", "Jobs", class_="unseen"), tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return tag("div", whole, class_="wide list", role="region", aria_label="Jobs", tabindex="0")


def _sort_head(by: str, words: str, sort: Sort, given: Given) -> Html:
    is_current = by == sort
    href = link_with(PATH, given, sort="" if by == "started" else by)
    shown = tag("a", words, href=href, title=f"Sort this page: {'newest' if by == 'started' else 'most'} first")
    mark = tag("span", " ▾", aria_hidden="true") if is_current else EMPTY
    return tag("th", shown, mark, scope="col", class_="number", aria_sort="descending" if is_current else None)


def _row(job: ListedJob, now: datetime) -> Html:
    session = SessionId(job.namespace, job.cluster, job.session)
    name = job.submission_id or job.job_id or ""
    return tag(
        "tr",
        tag("td", outcome_badge(job.outcome, is_doubtful=job.is_doubtful), class_="outcome"),
        tag("th", _title(job, session, name), scope="row", class_="what"),
        tag("td", _why(job, session, name), class_="why"),
        tag("td", task_bar(job.tasks), class_="tasks"),
        tag("td", duration(_ran(job, now)), class_="number ran"),
        tag("td", ago(job.started_at, now), class_="number when"),
    )


def _title(job: ListedJob, session: SessionId, name: str) -> Html:
    """What people call it; its command is its title, its id and its cluster stand below."""
    script = script_name(job.entrypoint) or _command(job.entrypoint) or name or "not started"
    title = tag("a", script, href=job_path(session, name), title=job.entrypoint or None) if name else quiet(script)
    below = [f"{name} · "] if name and name != script else []
    cluster = tag("a", f"{job.namespace}/{job.cluster}", href=overview_path(session))
    about = ", ".join(f"{key}={value}" for key, value in job.metadata.items())
    more = f" · {about[:_METADATA_CHARS]}" if about else ""
    return join([title, tag("span", *below, cluster, more, class_="below")])


def _command(entrypoint: str) -> str:
    """The program; empty where it only runs what it was handed as text."""
    program = entrypoint.split(maxsplit=1)[0].rpartition("/")[2] if entrypoint.strip() else ""
    return "" if program.startswith(_INTERPRETERS) else program


def _why(job: ListedJob, session: SessionId, name: str) -> Html | str:
    if not job.failure and not job.headline and job.outcome != Outcome.FAILED:
        return ""
    words, aside = job.failure or "Open the report", ""
    if job.headline:
        words = job.headline.text
        aside = " · ".join(part for part in (job.headline.what, job.headline.where) if part)
    first_look = tag("span", "provisional", title=_FIRST_LOOK, class_="badge") if job.is_provisional else EMPTY
    return join([link(words, report_path(session, name or None)), " ", quiet(aside), first_look])


def _ran(job: ListedJob, now: datetime) -> timedelta | None:
    """So far, of one that runs."""
    if job.started_at is None:
        return None
    if job.ended_at is not None:
        return job.ended_at - job.started_at
    return now - job.started_at if job.outcome in _AT_WORK else None
