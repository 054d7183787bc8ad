"""The pages of searches and of parts of logs, as requests."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.asked import Asked
from raykeeper.history.keeper.operation import Query
from raykeeper.history.keeper.search import (
    HITS,
    SECONDS,
    SearchQuery,
    SessionsSearchQuery,
    WordsQuery,
    search_in_session,
    search_in_sessions,
)
from raykeeper.history.keeper.sessions import Name
from raykeeper.history.pages.forms import given_parameters, page_query
from raykeeper.history.pages.logpart import log_part_page
from raykeeper.history.pages.search import session_search_page, sessions_search_page
from raykeeper.history.parts import Parts
from raykeeper.history.search.logparts import read_part

_CONTEXT_LIMIT = 4  # thirty hits of nine lines of 400 characters: a page stays below 200 kB
W = TypeVar("W", bound=WordsQuery)


class LogPartQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of which log."""

    node: Annotated[Name, Meta(min_length=1)]
    file: Annotated[str, Meta(min_length=1, max_length=4096)]  # as long as a path may be
    generation: Name = ""
    at: Annotated[int, Meta(ge=0, le=2**62)] = 0


async def get_session_search_page(request: Request, asked: Asked, parts: Parts) -> Response:
    """What was found; without words, or with what cannot be looked for, the form that asks for them."""
    session = asked.session.id
    given = given_parameters(request.query_params.multi_items(), SearchQuery)
    if "text" not in given:
        return session_search_page(session, given, None)
    try:
        answer = await search_in_session(parts, session, _for_page(page_query(given, SearchQuery)))
    except InvalidQuery as exc:
        return session_search_page(session, given, None, _sentence(exc), 400)
    return session_search_page(session, given, answer)


async def get_search_page(request: Request, parts: Parts) -> Response:
    """The same in many sessions."""
    given = given_parameters(request.query_params.multi_items(), SessionsSearchQuery)
    if "text" not in given:
        return sessions_search_page(given, None)
    try:
        answer = await search_in_sessions(parts, _for_page(page_query(given, SessionsSearchQuery)))
    except InvalidQuery as exc:
        return sessions_search_page(given, None, _sentence(exc), 400)
    return sessions_search_page(given, answer)


async def get_log_part_page(request: Request, asked: Asked, parts: Parts) -> Response:
    given = given_parameters(request.query_params.multi_items(), LogPartQuery)
    query = page_query(given, LogPartQuery)
    session = asked.session.id
    part = await read_part(parts.logs, session, query.node, query.file, query.generation, query.at)
    return log_part_page(session, part)


def _for_page(query: W) -> W:
    """The same, with no more lines than a page has room for, nor a longer wait than people have patience."""
    return msgspec.structs.replace(
        query,
        limit=min(query.limit, HITS),
        context=min(query.context, _CONTEXT_LIMIT),
        seconds=min(query.seconds, SECONDS),
    )


def _sentence(error: InvalidQuery) -> str:
    """Errors are lower case without a full stop, because they stand in log lines."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
