"""KubeRay's way to a session: `/clusters` lists them, `/enter_cluster/…` sets the cookies that choose one."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.addressing import LATEST, NEWEST, session_cookies, set_cookies
from raykeeper.history.answers import json_response, text_response
from raykeeper.history.catalog import Catalog
from raykeeper.history.entries import CatalogEntry
from raykeeper.layout.keys import SessionId

_LISTED = 100  # as many as KubeRay lists
_OWNERS = ("rayjob", "rayservice")
_SESSION_NAME = re.compile(r"session_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6}(_.*)?")


async def list_clusters(_: Request, catalog: Catalog) -> Response:
    page = await catalog.page(_LISTED)
    return json_response([cluster_response(entry) for entry in page.entries])


def cluster_response(entry: CatalogEntry) -> dict[str, Any]:
    """One session in KubeRay's words."""
    start = entry.start
    started_at = start.started_at.astimezone(UTC)
    facts: dict[str, Any] = {
        "name": start.cluster,
        "namespace": start.namespace,
        "sessionName": start.session,
        "createTime": started_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "createTimeStamp": int(started_at.timestamp()),
    }
    owner = {"ownerKind": start.owner_kind.lower(), "ownerName": start.owner_name}
    return facts | {name: value for name, value in owner.items() if value}


async def enter_cluster(request: Request, catalog: Catalog) -> Response:
    params = request.path_params
    namespace, kind, name = params["namespace"], params["kind"].lower(), params["name"]
    if kind != "raycluster" and kind not in _OWNERS:
        return text_response(f"kind {params['kind']} is unknown: use raycluster, rayjob or rayservice", 400)
    wanted = params.get("session", LATEST)
    session = await _find(catalog, namespace, kind, name, wanted)
    if session is None:
        is_a_name = wanted in NEWEST or _SESSION_NAME.fullmatch(wanted)
        return text_response(f"{kind} {namespace}/{name} has no session {wanted}", 404 if is_a_name else 400)
    response = json_response({"result": "success", "name": name, "namespace": namespace, "session": session.session})
    owner = (kind, name) if kind in _OWNERS else ("", "")
    set_cookies(response, session_cookies(session, *owner))
    return response


async def _find(catalog: Catalog, namespace: str, kind: str, name: str, session: str) -> SessionId | None:
    cluster = name
    if kind in _OWNERS:
        entry = await catalog.newest_of_owner(namespace, kind, name)
        if entry is None or session in NEWEST:
            return entry.id if entry else None
        cluster = entry.id.cluster
    if session in NEWEST:
        return await catalog.newest_of_cluster(namespace, cluster)
    wanted = SessionId(namespace, cluster, session)
    return wanted if await catalog.is_known(wanted) else None
