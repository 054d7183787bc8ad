"""Operations on sessions: the list of all of them, and one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from raykeeper.history.http.keeper_api.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.store.catalog_entries import SessionFilter, parse_place
from raykeeper.history.store.session_list import SessionList, SessionRow, SessionRows, SessionsRequest
from raykeeper.history.store.session_state import State
from raykeeper.history.urls import session_path
from raykeeper.layout.summaries import HeadlineSummary
from raykeeper.masking import masked_value

PAGE_ROWS, PAGE_LIMIT = 50, 500
NAME_CHARS = 300  # names in Kubernetes have at most 253
StateName = Literal["running", "ended", "crashed", "unknown"]
Name = Annotated[str, Meta(max_length=NAME_CHARS)]


class SessionsQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions are wanted, and from where on."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="Sessions of one page.")] = PAGE_ROWS
    after: Annotated[str, Meta(max_length=2000, description="`next` of the page before this one.")] = ""
    namespace: Annotated[Name, Meta(description="Only sessions of this namespace.")] = ""
    cluster: Annotated[Name, Meta(description="Only sessions of clusters of this name.")] = ""
    owner: Annotated[Name, Meta(description="Only sessions made for the RayJob or RayService of this name.")] = ""
    since: Annotated[datetime, Meta(tz=True, description="Only sessions that started then or later.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Only sessions that started before.")] | None = None
    text: Annotated[Name, Meta(description="Only sessions with all of these words in their names.")] = ""
    state: Annotated[StateName, Meta(description="Only sessions in this state.")] | None = None
    order: Annotated[Literal["newest", "oldest"], Meta(description="Which come first, by their start.")] = "newest"


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as lists show it."""

    namespace: str
    cluster: str
    session: str
    state: State
    is_doubtful: Annotated[bool, Meta(description="It counts as running, but its head missed a heartbeat.")]
    started_at: datetime
    ended_at: datetime | None
    owner_kind: str
    owner_name: str
    ray_version: str
    outcome: Annotated[
        str, Meta(description="How it went, in the words of reports; empty where it was not read to its end yet.")
    ]
    headline: Annotated[HeadlineSummary | None, Meta(description="What its report says first, if something failed.")]
    jobs: Annotated[int | None, Meta(description="How many jobs it had; null where that is not known yet.")]
    failed_jobs: Annotated[int, Meta(description="Of these, how many failed.")]
    is_held: Annotated[bool, Meta(description="Somebody holds it: retention does not remove it.")] = False
    path: Annotated[str, Meta(description="Of the session's pages on this server; the Ray dashboard is there.")]


class SessionsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the list of sessions."""

    sessions: tuple[ListedSession, ...]
    next: Annotated[str | None, Meta(description="For `after`, where there may be more.")]
    is_cut: Annotated[
        bool, Meta(description="Few sessions are as wanted, and not all were looked at: go on with `next`.")
    ]
    unreadable: Annotated[int, Meta(description="Entries of the catalog that could not be read and are missing.")]


async def list_sessions(call: Call[SessionsQuery]) -> SessionsAnswer:
    return sessions_answer(await find_sessions(call.history, call.query))


async def get_session(call: Call[NoQuery]) -> ListedSession:
    session = await call.session()
    entry = await call.history.catalog.find(session)
    if entry is None:
        await call.history.catalog.removals.check_record(session)
        raise SessionMissing(session)
    lists = SessionList(call.history.catalog, call.history.heartbeats)
    return listed_session(await lists.row_of(entry))


async def find_sessions(history: History, query: SessionsQuery) -> SessionRows:
    """What the query asks for. Raises InvalidQuery."""
    wanted = SessionsRequest(
        limit=query.limit,
        after=parse_place(query.after) if query.after else None,
        within=SessionFilter(query.namespace, query.cluster, query.owner, query.since, query.until, query.text),
        state=State(query.state) if query.state else None,
        order=query.order,
    )
    return await SessionList(history.catalog, history.heartbeats).rows(wanted)


def sessions_answer(found: SessionRows) -> SessionsAnswer:
    return SessionsAnswer(
        sessions=tuple(map(listed_session, found.rows)),
        next=str(found.next_place) if found.next_place else None,
        is_cut=found.is_cut,
        unreadable=found.unreadable,
    )


def listed_session(row: SessionRow) -> ListedSession:
    """A running session is running, whatever was summed up of it before."""
    start, summary = row.entry.start, row.summary
    is_running = row.state is State.RUNNING
    return ListedSession(
        namespace=start.namespace,
        cluster=start.cluster,
        session=start.session,
        state=row.state,
        is_doubtful=row.life.is_doubtful,
        started_at=start.started_at,
        ended_at=row.life.ended_at,
        owner_kind=start.owner_kind,
        owner_name=start.owner_name,
        ray_version=start.ray_version,
        outcome=State.RUNNING.value if is_running else summary.outcome if summary else "",
        headline=masked_value(summary.headline) if summary else None,
        jobs=len(summary.jobs) + summary.left_out if summary else None,
        failed_jobs=sum(job.outcome == Outcome.FAILED for job in summary.jobs) if summary else 0,
        is_held=row.is_held,
        path=session_path(row.entry.id),
    )


SESSION_OPERATIONS = (
    Operation("list_sessions", "/sessions", "All sessions", SessionsQuery, SessionsAnswer, list_sessions),
    Operation("get_session", SESSION, "One session", NoQuery, ListedSession, get_session),
)
