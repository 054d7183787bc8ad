"""KubeRay's way to a session: `/clusters` lists them, `/enter_cluster/…` sets the cookies that choose one."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import json_response, text_response
from raykeeper.history.http.routing import LATEST, LIVE, NEWEST, session_cookies, set_cookies
from raykeeper.history.query.history import History
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.layout.keys import SessionId
from raykeeper.masking import masked

_LISTED = 100  # as many as KubeRay lists
_CLUSTER = "raycluster"
_OWNERS = ("rayjob", "rayservice")
_SESSION_NAME = re.compile(r"session_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6}(_.*)?")


async def list_clusters(_: Request, history: History) -> Response:
    listed = await history.live.list(_LISTED)
    rows = [_live_response(entry) for entry in listed.live] + [_cluster_response(entry) for entry in listed.stored]
    return json_response(masked(rows))


def _live_response(entry: CatalogEntry) -> dict[str, Any]:
    """The session of a running cluster in KubeRay's words; it writes this time as Go prints one."""
    created = entry.start.started_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    return _cluster_response(entry) | {"sessionName": LIVE, "createTime": created}


def _cluster_response(entry: CatalogEntry) -> dict[str, Any]:
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


async def enter_cluster(request: Request, history: History) -> Response:
    params = request.path_params
    namespace, kind, name, wanted = _asked_for(params)
    if kind != _CLUSTER and kind not in _OWNERS:
        return text_response(f"kind {params['kind']} is unknown: use raycluster, rayjob or rayservice", 400)
    session = await _find(history.catalog, namespace, kind, name, wanted)
    is_live = session is not None and await history.live.is_live(session)
    if session is None or (wanted == LIVE and not is_live):
        is_a_name = wanted in NEWEST or _SESSION_NAME.fullmatch(wanted)
        return text_response(f"{kind} {namespace}/{name} has no session {wanted}", 404 if is_a_name else 400)
    shown = SessionId(session.namespace, session.cluster, LIVE if is_live else session.session)
    response = json_response(
        masked({"result": "success", "name": name, "namespace": namespace, "session": shown.session})
    )
    owner = (kind, name) if kind in _OWNERS else ("", "")
    set_cookies(response, session_cookies(shown, *owner))
    return response


def _asked_for(params: dict[str, str]) -> tuple[str, str, str, str]:
    """Namespace, kind, name, session. KubeRay before 1.7, and its dashboard still, name a RayCluster without a kind."""
    kind, name = params["kind"].lower(), params["name"]
    is_old = "session" not in params and kind != _CLUSTER and kind not in _OWNERS
    if is_old and (name in NEWEST or _SESSION_NAME.fullmatch(name)):
        return params["namespace"], _CLUSTER, params["kind"], name
    return params["namespace"], kind, name, params.get("session", LATEST)


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
