"""The start page and the ways into a session, as requests."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.keeper.sessions import SessionsQuery, find_sessions
from raykeeper.history.pages.addresses import session_path
from raykeeper.history.pages.forms import given_parameters, page_query
from raykeeper.history.pages.frame import message_response
from raykeeper.history.pages.start import start_page
from raykeeper.history.parts import Parts


async def list_sessions(request: Request, parts: Parts) -> Response:
    given = given_parameters(request.query_params.multi_items(), SessionsQuery)
    found = await find_sessions(parts, page_query(given, SessionsQuery))
    return start_page(found, given, is_undecided=parts.access.is_undecided)


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
