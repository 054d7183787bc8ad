"""`raykeeper jobs` and `raykeeper sessions`: lists from a store or a server, and the last failure of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec
from rich.console import Console
from rich.text import Text

from raykeeper.errors import Unavailable
from raykeeper.history.commands.report_text import default_console, harmless
from raykeeper.history.commands.subjects import Source, Subject, ask_server, history_over
from raykeeper.history.http.keeper_api.jobs import JobsAnswer, JobsQuery, ListedJob, jobs_answer, jobs_found
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.keeper_api.sessions import (
    ListedSession,
    SessionsAnswer,
    SessionsQuery,
    find_sessions,
    sessions_answer,
)
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.store.session_state import DOUBTFUL
from raykeeper.history.text import counted
from raykeeper.layout.keys import SessionId

_HEADINGS = ("STATE", "STARTED", "TOOK", "NAME")
Kind = Literal["jobs", "sessions"]
_Answer = TypeVar("_Answer", JobsAnswer, SessionsAnswer)
_READ_SECONDS = 30.0
"""How long one waits for sessions that nobody has read before."""
_LOOK_SECONDS = 0.5
_FAILURE_ROWS, _FAILURE_PAGES = 500, 10
"""Jobs among which the last failure is looked for: the newest five thousand."""
_FAILURES = (Outcome.FAILED, Outcome.WITH_FAILURES, Outcome.FAILING)
_STYLES = {
    "ok": "green",
    "running": "green",
    "failed": "bold red",
    "crashed": "bold red",
    "with failures": "yellow",
    "stopped": "yellow",
    "running with failures": "yellow",
    DOUBTFUL: "bold red",
}
_NEXT = (
    "Next: `raykeeper demo` runs a job and keeps its history, `raykeeper import` brings sessions from KubeRay's,\n"
    "and docs/history-on-kubernetes.md says how a cluster keeps its own."
)


class Lists(Protocol):
    """The two lists, from wherever they come."""

    async def jobs(self, query: JobsQuery) -> JobsAnswer: ...

    async def sessions(self, query: SessionsQuery) -> SessionsAnswer: ...


@dataclass(frozen=True)
class _StoreLists:
    history: History

    async def jobs(self, query: JobsQuery) -> JobsAnswer:
        return jobs_answer(await jobs_found(self.history, query))

    async def sessions(self, query: SessionsQuery) -> SessionsAnswer:
        return sessions_answer(await find_sessions(self.history, query))


@dataclass(frozen=True)
class _ServerLists:
    url: str
    token: str

    async def jobs(self, query: JobsQuery) -> JobsAnswer:
        return await self._ask("jobs", query, JobsAnswer)

    async def sessions(self, query: SessionsQuery) -> SessionsAnswer:
        return await self._ask("sessions", query, SessionsAnswer)

    async def _ask(self, name: str, query: msgspec.Struct, kind: type[_Answer]) -> _Answer:
        given = {key: value for key, value in msgspec.to_builtins(query).items() if value}
        try:
            return msgspec.json.decode(
                await ask_server(self.url, f"{PREFIX}/{name}?{urlencode(given)}", self.token), type=kind
            )
        except msgspec.DecodeError as exc:
            raise Unavailable(self.url, str(exc)) from exc


@asynccontextmanager
async def opened_lists(source: Source, environment: Mapping[str, str]) -> AsyncIterator[Lists]:
    """Raises RaykeeperError."""
    source.check()
    if not source.store:
        yield _ServerLists(source.server, source.token(environment))
        return
    async with history_over(source.store, environment, source.cache_dir) as history:
        yield _StoreLists(history)


async def read_jobs(lists: Lists, query: JobsQuery) -> JobsAnswer:
    """One page, once every session of it was read; after a while without those that were not."""
    deadline = asyncio.get_running_loop().time() + _READ_SECONDS
    while True:
        answer = await lists.jobs(query)
        if not answer.unread or asyncio.get_running_loop().time() > deadline:
            return answer
        await asyncio.sleep(_LOOK_SECONDS)


@dataclass(frozen=True)
class LastFailure:
    """The job that failed last, and how many were looked at."""

    job: ListedJob | None
    looked_at: int
    unread: int

    @property
    def subject(self) -> Subject | None:
        if self.job is None:
            return None
        return Subject(session_of(self.job), name_of(self.job) or None)


async def last_failure(lists: Lists) -> LastFailure:
    """Of the newest jobs, the one that ended last of those in which something failed."""
    looked_at, unread, after = 0, 0, ""
    for _ in range(_FAILURE_PAGES):
        answer = await read_jobs(lists, JobsQuery(limit=_FAILURE_ROWS, after=after))
        looked_at, unread = looked_at + len(answer.jobs), unread + answer.unread
        failed = [job for job in answer.jobs if job.outcome in _FAILURES]
        if failed:
            return LastFailure(max(failed, key=_ended), looked_at, unread)
        if answer.next is None:
            break
        after = answer.next
    return LastFailure(None, looked_at, unread)


def _ended(job: ListedJob) -> datetime:
    return job.ended_at or job.started_at or datetime.min.replace(tzinfo=UTC)


def session_of(row: ListedJob | ListedSession) -> SessionId:
    return SessionId(row.namespace, row.cluster, row.session)


def name_of(job: ListedJob) -> str:
    """What people call it."""
    return job.submission_id or job.job_id or ""


@dataclass(frozen=True)
class ListCommand:
    """What the command line said."""

    kind: Kind
    source: Source
    namespace: str = ""
    cluster: str = ""
    limit: int = 20
    is_json: bool = False

    @property
    def is_filtered(self) -> bool:
        return bool(self.namespace or self.cluster)


def run(command: ListCommand, environment: Mapping[str, str], console: Console | None = None) -> None:
    """Print the list. Raises RaykeeperError."""
    answer = asyncio.run(_read(command, environment))
    screen = console or default_console()
    if command.is_json:
        text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
        screen.print(Text(text), soft_wrap=True)
        return
    now = datetime.now(UTC)
    rows = list(_job_rows(answer.jobs, now) if isinstance(answer, JobsAnswer) else _session_rows(answer.sessions, now))
    for line in (*_table(rows), *_notes(command, answer, len(rows))):
        screen.print(line, soft_wrap=True)


async def _read(command: ListCommand, environment: Mapping[str, str]) -> JobsAnswer | SessionsAnswer:
    async with opened_lists(command.source, environment) as lists:
        limit, namespace, cluster = command.limit, command.namespace, command.cluster
        if command.kind == "jobs":
            return await read_jobs(lists, JobsQuery(limit=limit, namespace=namespace, cluster=cluster))
        return await lists.sessions(SessionsQuery(limit=limit, namespace=namespace, cluster=cluster))


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    below: str = ""
    """Why, on a line of its own: errors are long."""


def _job_rows(jobs: Sequence[ListedJob], now: datetime) -> Iterator[_Row]:
    for job in jobs:
        parts = (str(session_of(job)), name_of(job))
        yield _Row(
            (
                DOUBTFUL if job.is_doubtful else job.outcome,
                _ago(job.started_at, now),
                _took(job.started_at, job.ended_at),
                "/".join(filter(None, parts)),
            ),
            _why(job),
        )


def _why(job: ListedJob) -> str:
    if job.headline is None:
        return f"{job.failure} (by its own message)" if job.failure and job.is_provisional else job.failure
    return f"{job.headline.text} ({job.headline.where})" if job.headline.where else job.headline.text


def _session_rows(sessions: Sequence[ListedSession], now: datetime) -> Iterator[_Row]:
    for one in sessions:
        owner = f"for {one.owner_kind} {one.owner_name}" if one.owner_name else ""
        took = _took(one.started_at, one.ended_at)
        state = DOUBTFUL if one.is_doubtful else one.state.value
        yield _Row((state, _ago(one.started_at, now), took, str(session_of(one))), owner)


def _table(rows: Sequence[_Row]) -> Iterator[Text]:
    """Columns as wide as they need to be; the last one is never cut, so that it can be copied."""
    if not rows:
        return
    cells = [_HEADINGS, *(tuple(map(_one_line, row.cells)) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(_HEADINGS) - 1)]
    for number, line in enumerate(cells):
        padded = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=False)]
        text = Text("  ".join([*padded, line[-1]]), "dim" if not number else "")
        if number:
            text.stylize(_STYLES.get(line[0], ""), 0, len(line[0]))
        yield text
        if number and rows[number - 1].below:
            yield Text(f"  {_one_line(rows[number - 1].below)}", "dim")


def _notes(command: ListCommand, answer: JobsAnswer | SessionsAnswer, shown: int) -> Iterator[Text]:
    """What the table does not say, and what to do next."""
    place = "on this server" if command.source.server else "in this store"
    if not shown:
        yield Text(f"no {command.kind} {place}" + (" are as wanted" if command.is_filtered else " yet"))
        if not command.is_filtered:
            yield Text(_NEXT, "dim")
    elif answer.next is not None:
        yield Text(f"older {command.kind} are not shown: --limit, --namespace and --cluster say which are", "dim")
    if isinstance(answer, JobsAnswer) and answer.unread:
        yield Text(f"{counted(answer.unread, 'session')} not read yet: ask again for their jobs", "dim")
    if answer.unreadable:
        yield Text(f"{counted(answer.unreadable, 'session')} could not be read from the store's list", "yellow")
    if shown:
        yield Text("\nraykeeper report <name>   says why · raykeeper report   takes the last failure", "dim")


def _one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def _ago(at: datetime | None, now: datetime) -> str:
    return f"{_span(now - at)} ago" if at is not None else "unknown"


def _took(start: datetime | None, end: datetime | None) -> str:
    return _span(end - start) if start is not None and end is not None else "-"


_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def _span(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    return next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), f"{seconds} s")
