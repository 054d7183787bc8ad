"""The start page and the ways into a session, as requests."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.entries import CatalogEntry, parse_place
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.pages.addresses import session_path
from raykeeper.history.pages.frame import message_response
from raykeeper.history.pages.start import SessionRow, start_page
from raykeeper.history.parts import Parts
from raykeeper.history.state import State

ROWS = 50
_LOOKS_AT_ONCE = 16


async def list_sessions(request: Request, parts: Parts) -> Response:
    after = request.query_params.get("after")
    page = await parts.catalog.page(ROWS, parse_place(after) if after else None)
    looks = asyncio.Semaphore(_LOOKS_AT_ONCE)
    states = await asyncio.gather(*(_state(entry, parts.heartbeats, looks) for entry in page.entries))
    rows = [SessionRow(entry, state) for entry, state in zip(page.entries, states, strict=True)]
    return start_page(rows, page, is_first=not after, is_undecided=parts.access.is_undecided)


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


async def _state(entry: CatalogEntry, heartbeats: Heartbeats, looks: asyncio.Semaphore) -> State:
    """From the catalog alone for what ended well; a heartbeat tells whether the rest still runs."""
    if entry.has_ended:
        return State.ENDED
    async with looks:
        return (await heartbeats.verdict(entry.id)).state
