"""Which session a request is about: by its path, or by KubeRay's cookies."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import HTTPConnection
from starlette.responses import Response

from raykeeper.history.http.errors import NoSession
from raykeeper.history.urls import LATEST as LATEST
from raykeeper.layout.keys import SessionId

LIVE = "live"
"""KubeRay's word for the session of a running cluster."""
NEWEST = (LATEST, LIVE)
"""Both lead to the session that started last, so that what pointed to a running cluster still works when it is gone."""
SESSION_PATH = "/s/{namespace}/{cluster}/{session}"
NAMESPACE_COOKIE, CLUSTER_COOKIE, SESSION_COOKIE = "cluster_namespace", "cluster_name", "session_name"
OWNER_COOKIES = ("owner_kind", "owner_name")
COOKIE_SECONDS = 600  # KubeRay's; every answer renews them


def session_of_path(connection: HTTPConnection) -> SessionId:
    params = connection.path_params
    return SessionId(params["namespace"], params["cluster"], params["session"])


def session_of_cookies(connection: HTTPConnection) -> SessionId:
    """Raises NoSession where a cookie is missing."""
    names = [connection.cookies.get(name, "") for name in (NAMESPACE_COOKIE, CLUSTER_COOKIE, SESSION_COOKIE)]
    if not all(names):
        raise NoSession("no session is chosen: ask /enter_cluster/{namespace}/{kind}/{name}/{session} first")
    namespace, cluster, session = names
    return SessionId(namespace, cluster, LATEST if session in NEWEST else session)


def session_cookies(session: SessionId, owner_kind: str = "", owner_name: str = "") -> dict[str, str]:
    """What makes the next requests be about this session."""
    return {
        CLUSTER_COOKIE: session.cluster,
        NAMESPACE_COOKIE: session.namespace,
        SESSION_COOKIE: session.session,
        **dict(zip(OWNER_COOKIES, (owner_kind, owner_name), strict=True)),
    }


def set_cookies(response: Response, cookies: Mapping[str, str]) -> None:
    for name, value in cookies.items():
        if value:
            response.set_cookie(name, value, COOKIE_SECONDS, httponly=True, samesite="lax")


def renew_cookies(response: Response, connection: HTTPConnection) -> None:
    """Send the request's own cookies again with their full time."""
    known = (CLUSTER_COOKIE, NAMESPACE_COOKIE, SESSION_COOKIE, *OWNER_COOKIES)
    set_cookies(response, {name: connection.cookies.get(name, "") for name in known})
