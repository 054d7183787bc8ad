"""The start page and the ways into a session, as requests."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.catalog import Catalog
from raykeeper.history.entries import CatalogEntry, parse_place
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.pages.html import message_response
from raykeeper.history.pages.start import SessionRow, session_path, start_page
from raykeeper.history.settings import AccessSettings
from raykeeper.history.state import State

ROWS = 50
_LOOKS_AT_ONCE = 16


class SessionPages:
    def __init__(self, catalog: Catalog, heartbeats: Heartbeats, access: AccessSettings) -> None:
        self._catalog = catalog
        self._heartbeats = heartbeats
        self._access = access
        self._looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def list_sessions(self, request: Request) -> Response:
        after = request.query_params.get("after")
        try:
            page = await self._catalog.page(ROWS, parse_place(after) if after else None)
        except InvalidQuery as exc:
            return message_response("No such page", str(exc), 400)
        states = await asyncio.gather(*(self._state(entry) for entry in page.entries))
        rows = [SessionRow(entry, state) for entry, state in zip(page.entries, states, strict=True)]
        return start_page(rows, page, is_first=not after, is_undecided=self._access.is_undecided)

    async def redirect_to_latest(self, request: Request) -> Response:
        namespace, cluster = request.path_params["namespace"], request.path_params["cluster"]
        latest = await self._catalog.newest_of_cluster(namespace, cluster)
        if latest is None:
            return message_response("No session", f"Cluster {namespace}/{cluster} has no session.", 404)
        rest = quote(request.path_params.get("rest", ""))
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{session_path(latest)}{rest}{query}", 302)

    async def add_slash(self, request: Request) -> Response:
        """Everything in Ray's pages is relative to a path that ends in a slash."""
        names = (request.path_params[name] for name in ("namespace", "cluster", "session"))
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/s/{'/'.join(quote(name, safe='') for name in names)}/{query}", 307)

    async def _state(self, entry: CatalogEntry) -> State:
        """From the catalog alone for what ended well; a heartbeat tells whether the rest still runs."""
        if entry.has_ended:
            return State.ENDED
        async with self._looks:
            return (await self._heartbeats.verdict(entry.id)).state
