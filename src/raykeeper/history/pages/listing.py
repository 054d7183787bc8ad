"""The start page and the ways into a session, as requests."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.errors import RaykeeperError
from raykeeper.history.keeper.sessions import SessionsQuery, find_sessions
from raykeeper.history.kubefacts.unstarted import Unstarted
from raykeeper.history.pages.addresses import session_path
from raykeeper.history.pages.forms import given_parameters, page_query
from raykeeper.history.pages.frame import message_response
from raykeeper.history.pages.start import start_page
from raykeeper.history.pages.unstarted import unstarted_section
from raykeeper.history.parts import Parts

_UNSTARTED_SECONDS = 0.02  # of the 100 ms that a list of 10,000 sessions may take


async def list_sessions(request: Request, parts: Parts) -> Response:
    given = given_parameters(request.query_params.multi_items(), SessionsQuery)
    query = page_query(given, SessionsQuery)
    if given:
        return start_page(await find_sessions(parts, query), given, is_undecided=parts.access.is_undecided)
    found, unstarted = await asyncio.gather(find_sessions(parts, query), _unstarted(parts))
    section = unstarted_section(unstarted)
    return start_page(found, given, section, is_undecided=parts.access.is_undecided)


async def _unstarted(parts: Parts) -> Unstarted:
    """What is known by now: the list of sessions does not wait for it, nor fail with it."""
    try:
        return await parts.catalog.unstarted.known_within(_UNSTARTED_SECONDS)
    except RaykeeperError:
        return Unstarted()


async def redirect_to_latest(request: Request, parts: Parts) -> Response:
    namespace, cluster = request.path_params["namespace"], request.path_params["cluster"]
    latest = await parts.catalog.newest_of_cluster(namespace, cluster)
    if latest is None:
        return message_response("No session", f"Cluster {namespace}/{cluster} has no session.", 404)
    rest = quote(request.path_params.get("rest", ""))
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{session_path(latest)}{rest}{query}", 302)


async def add_slash(request: Request, _: Parts) -> Response:
    """Everything in Ray's pages is relative to a path that ends in a slash."""
    names = (request.path_params[name] for name in ("namespace", "cluster", "session"))
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/s/{'/'.join(quote(name, safe='') for name in names)}/{query}", 307)
