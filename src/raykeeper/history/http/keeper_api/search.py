"""Search in one session, and in the sessions of a time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.operation import SESSION, Call, Operation, Query
from raykeeper.history.http.keeper_api.sessions import Name
from raykeeper.history.query.history import History
from raykeeper.history.report.make import JobUnknown
from raykeeper.history.search.match import make_matcher
from raykeeper.history.search.model import (
    CONTEXT_LIMIT,
    CONTEXT_LINES,
    KINDS,
    WORDS_CHARS,
    Budget,
    SearchAnswer,
    SearchPlace,
    SearchRequest,
    SessionsSearchAnswer,
    Skipped,
    parse_search_place,
    unsearched_of,
)
from raykeeper.history.search.sessions import SessionSearch, SessionsSearch, with_job
from raykeeper.history.store.catalog_entries import SessionFilter
from raykeeper.layout.keys import SessionId

HITS, HITS_LIMIT = 30, 200
SECONDS, SECONDS_LIMIT = 1.5, 30.0
"""How long a search goes on before it answers: a page is there within two seconds."""
KindName = Literal["error", "event", "log"]


class WordsQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is looked for."""

    text: Annotated[
        str, Meta(min_length=1, max_length=WORDS_CHARS, pattern=r"^[^\n]*$", description="What a line must hold.")
    ]
    regex: Annotated[bool, Meta(description="`text` is a regular expression, in RE2's syntax.")] = False
    ignore_case: Annotated[bool, Meta(description="Small and capital letters are the same.")] = False
    kind: Annotated[KindName, Meta(description="Only errors, only events, or only lines of logs.")] | None = None
    file: Annotated[
        Name, Meta(description="Only logs whose path matches, as `worker-*.err`; a name means it in any folder.")
    ] = ""
    context: Annotated[int, Meta(ge=0, le=CONTEXT_LIMIT, description="Lines before and after each hit.")] = (
        CONTEXT_LINES
    )
    limit: Annotated[int, Meta(ge=1, le=HITS_LIMIT, description="Hits of one answer.")] = HITS
    seconds: Annotated[
        float, Meta(ge=0, le=SECONDS_LIMIT, description="Answer after this time with what was found.")
    ] = SECONDS
    after: Annotated[str, Meta(max_length=4000, description="`next` of the answer before this one.")] = ""


class SearchQuery(WordsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In one session."""

    node: Annotated[Name, Meta(description="Only of the node whose id is, or begins with, this.")] = ""
    job: Annotated[Name, Meta(description="Only of this job, by its id or submission id.")] = ""
    since: Annotated[datetime, Meta(tz=True, description="Only what was said then or later.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Only what was said before.")] | None = None


class SessionsSearchQuery(WordsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In many sessions."""

    namespace: Annotated[Name, Meta(description="Only sessions of this namespace.")] = ""
    cluster: Annotated[Name, Meta(description="Only sessions of clusters of this name.")] = ""
    owner: Annotated[Name, Meta(description="Only sessions made for the RayJob or RayService of this name.")] = ""
    since: Annotated[datetime, Meta(tz=True, description="Only sessions that started then or later.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Only sessions that started before.")] | None = None


async def search_in_session(history: History, session: SessionId, query: SearchQuery) -> SearchAnswer:
    """Raises InvalidQuery and NotFound."""
    await history.check_known(session)
    wanted = await _of_job(history, session, _to_request(query), query.job)
    budget, skipped = Budget(query.limit, query.seconds), Skipped()
    search = SessionSearch(history, session, wanted, make_matcher(wanted), budget, skipped)
    place = await search.run(parse_search_place(query.after).inside if query.after else None)
    scanned, total = await search.progress(place)
    return SearchAnswer(
        hits=tuple(budget.hits),
        next=str(SearchPlace(place)) if place else None,
        complete=place is None,
        scanned_bytes=scanned,
        total_bytes=total,
        unsearched=unsearched_of(skipped),
    )


async def search_in_sessions(history: History, query: SessionsSearchQuery) -> SessionsSearchAnswer:
    """Raises InvalidQuery."""
    within = SessionFilter(query.namespace, query.cluster, query.owner, query.since, query.until)
    wanted, budget, skipped = _to_request(query), Budget(query.limit, query.seconds), Skipped()
    search = SessionsSearch(history, within, wanted, make_matcher(wanted), budget, skipped)
    place = await search.run(parse_search_place(query.after) if query.after else None)
    return SessionsSearchAnswer(
        hits=tuple(budget.hits),
        next=str(place) if place else None,
        complete=place is None,
        searched_sessions=search.searched,
        searched_back_to=search.back_to,
        unsearched=unsearched_of(skipped),
    )


def _to_request(query: SearchQuery | SessionsSearchQuery) -> SearchRequest:
    """What is looked for inside a session; the times of a search in many are those of sessions."""
    in_one = query if isinstance(query, SearchQuery) else None
    return SearchRequest(
        words=query.text,
        is_regex=query.regex,
        ignores_case=query.ignore_case,
        kinds=frozenset([query.kind] if query.kind else KINDS),
        node_id=in_one.node if in_one else "",
        files=query.file,
        since=in_one.since if in_one else None,
        until=in_one.until if in_one else None,
        context=query.context,
    )


async def _of_job(history: History, session: SessionId, wanted: SearchRequest, job: str) -> SearchRequest:
    try:
        return await with_job(history, session, wanted, job) if job else wanted
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


async def search_session(call: Call[SearchQuery]) -> SearchAnswer:
    return await search_in_session(call.history, await call.session(), call.query)


async def search_sessions(call: Call[SessionsSearchQuery]) -> SessionsSearchAnswer:
    return await search_in_sessions(call.history, call.query)


SEARCH_OPERATIONS = (
    Operation(
        "search_session",
        f"{SESSION}/search",
        "Lines of a session's errors, events and logs that hold some words",
        SearchQuery,
        SearchAnswer,
        search_session,
    ),
    Operation(
        "search_sessions",
        "/search",
        "The same in all sessions of a time, the newest first",
        SessionsSearchQuery,
        SessionsSearchAnswer,
        search_sessions,
    ),
)
