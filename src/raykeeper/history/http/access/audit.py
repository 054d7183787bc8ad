"""The audit log: one line for each look, with who looked, at what, and which answer they got. No query, which may hold
anything, and no token.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection

from raykeeper.history.http.access.callers import Caller
from raykeeper.history.http.keeper_api.operation import PREFIX as KEEPER
from raykeeper.history.http.pages.assets import ASSETS_PREFIX
from raykeeper.history.http.routing import CLUSTER_COOKIE, NAMESPACE_COOKIE, SESSION_COOKIE
from raykeeper.logs import Log

_PATH_CHARS: Final = 500
_NAME_CHARS: Final = 253
_OF_COOKIES: Final = ("/api/", "/nodes", "/logical/", "/events")
"""Paths of Ray's API at the root, where cookies say which session is meant."""

log = Log("raykeeper.history.audit")


def note_look(connection: HTTPConnection, caller: Caller | None, status: int) -> None:
    """Note one answer. `caller` is None for somebody who was not let in."""
    path = connection.url.path
    if path.startswith(ASSETS_PREFIX):
        return
    namespace, session = _place_of(connection)
    log.info(
        "look",
        user=caller.account if caller else "",
        is_let_in=caller is not None,
        method=connection.scope.get("method", "WEBSOCKET"),
        namespace=namespace,
        session=session,
        path=path[:_PATH_CHARS],
        status=status,
        client=connection.client.host if connection.client else "",
    )


def _place_of(connection: HTTPConnection) -> tuple[str, str]:
    """Namespace and session that a request was about; empty for those about many."""
    params = connection.scope.get("path_params") or {}
    names = [str(params.get(name, "")) for name in ("namespace", "cluster", "session")]
    if not names[0] and connection.url.path.startswith(_OF_COOKIES) and not connection.url.path.startswith(KEEPER):
        names = [connection.cookies.get(name, "") for name in (NAMESPACE_COOKIE, CLUSTER_COOKIE, SESSION_COOKIE)]
    shown = [name[:_NAME_CHARS] for name in names]
    return shown[0], "/".join(shown) if shown[2] else ""
