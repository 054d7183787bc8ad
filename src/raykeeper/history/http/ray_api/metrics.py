"""`/api/grafana_health`, `/api/prometheus_health`, `/api/prometheus/sd`: where the metrics of a past session are seen.

Metrics stay in the user's own Prometheus. The frontend's panels show the past when Grafana's address comes with the
name of the past session; but the frontend asks for the last minutes before now. So for a session that is over it is
given a path of ours in Grafana's place, which leads to Grafana with the time in which the session ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.errors import NotFound
from raykeeper.history.http.responses import dashboard_response, json_response
from raykeeper.history.masking import masked
from raykeeper.history.query.context import SessionContext
from raykeeper.history.settings import GrafanaSettings

DISABLED = "DISABLED"
NOT_SET = "RAY_GRAFANA_HOST is not set for the history server"

GRAFANA_PATH: Final = "grafana"
"""Below a session's prefix: the way to Grafana at the session's time. Relative, since a proxy may add to the prefix."""
_MARGIN: Final = timedelta(seconds=30)
"""Before and behind a session, so that its first and last samples are not at the edge; Ray takes as much for jobs."""
_SHOWN: Final = ("d/", "d-solo/")
"""Whole dashboards and single panels; nothing else of Grafana is linked from Ray's pages."""
_SPAN: Final = frozenset({"from", "to"})
_WITHOUT_NOW: Final = frozenset({"refresh"})

_DASHBOARDS = {
    "default": "rayDefaultDashboard",
    "serve": "rayServeDashboard",
    "serveDeployment": "rayServeDeploymentDashboard",
    "serveLlm": "rayServeLlmDashboard",
    "serveLlmSglang": "rayServeLlmSglangDashboard",
    "data": "rayDataDashboard",
    "dataLlm": "rayDataLlmDashboard",
    "train": "rayTrainDashboard",
}


async def get_grafana_health(request: Request, context: SessionContext) -> Response:
    grafana = context.grafana
    host = _host(request, grafana)
    if grafana.host == DISABLED:
        return dashboard_response("Grafana disabled", {"grafanaHost": DISABLED})
    if not host:
        return dashboard_response("Grafana healthcheck failed", {"exception": NOT_SET}, 500)
    data = {
        "grafanaHost": GRAFANA_PATH if await _is_shown_at_its_time(context, host) else host,
        "grafanaOrgId": grafana.org_id,
        "sessionName": context.session.id.session,
        "dashboardUids": _DASHBOARDS,
        "dashboardDatasource": grafana.prometheus_name,
        "grafanaClusterFilter": grafana.cluster_filter,
    }
    return dashboard_response("Grafana running", data)


async def get_grafana_at_its_time(request: Request, context: SessionContext) -> Response:
    """Leads to the dashboard or panel that the path names, at the session's time. Raises NotFound."""
    path, grafana = request.path_params["path"], context.grafana
    host = _host(request, grafana)
    if host in ("", DISABLED) or not path.startswith(_SHOWN):
        raise NotFound(f"there is no dashboard {path[:200]!r}")
    asked = request.query_params.multi_items()
    span = await _span_of(context)
    query = at_time_of(asked, *span) if span else asked
    known = {name for name, _ in query}
    named = {"var-SessionName": context.session.id.session, "var-Cluster": grafana.cluster_filter}
    added = [(name, value) for name, value in named.items() if value and name not in known]
    target = f"{host.rstrip('/')}/{quote(path)}?{urlencode([*query, *added])}"
    return RedirectResponse(target, 302, headers={"Cache-Control": "no-store"})


def at_time_of(query: Iterable[tuple[str, str]], began: datetime, ended: datetime) -> list[tuple[str, str]]:
    """The query with the session's time in the place of one that counts from now; a job's own time is kept. Pure."""
    asked = list(query)
    times = {name: value for name, value in asked if name in _SPAN}
    if len(times) == len(_SPAN) and all(value.isdecimal() for value in times.values()):
        return asked
    milliseconds = [int(moment.timestamp() * 1000) for moment in (began - _MARGIN, ended + _MARGIN)]
    began_ms = times["from"] if times.get("from", "").isdecimal() else str(milliseconds[0])
    kept = [(name, value) for name, value in asked if name not in _SPAN | _WITHOUT_NOW]
    return [*kept, ("from", began_ms), ("to", str(milliseconds[1]))]


async def _span_of(context: SessionContext) -> tuple[datetime, datetime] | None:
    """From the begin of a session to its end; None while it runs, or where nobody knows when it began."""
    record = context.session.record
    if record is None or not await context.is_over():
        return None
    return record.started_at, max(record.started_at, context.session.ended_at or context.session.as_of)


async def _is_shown_at_its_time(context: SessionContext, host: str) -> bool:
    return await _span_of(context) is not None and not _is_in_grafanas_cloud(host)


def _host(request: Request, grafana: GrafanaSettings) -> str:
    """Grafana as the reader's browser reaches it: as it was set, or at our own second port under the same name."""
    if grafana.host or not grafana.port:
        return grafana.host
    name = request.url.hostname or "localhost"
    shown = f"[{name}]" if ":" in name else name
    return f"{request.url.scheme}://{shown}:{grafana.port}"


def _is_in_grafanas_cloud(host: str) -> bool:
    """Ray's pages open such a Grafana in a tab of its own, by its name, since it does not let itself be framed."""
    name = urlsplit(host).hostname or ""
    return name == "grafana.net" or name.endswith(".grafana.net")


async def get_prometheus_health(request: Request, context: SessionContext) -> Response:
    """Panels are drawn only if both answer: where there is a Grafana, its data source is taken to be there."""
    if _host(request, context.grafana) in ("", DISABLED):
        return dashboard_response("prometheus healthcheck failed.", {"reason": NOT_SET}, 500)
    return dashboard_response("prometheus running", {})


async def get_prometheus_targets(_: Request, __: SessionContext) -> Response:
    """Nothing is left to scrape."""
    return json_response(masked([{"labels": {"job": "ray"}, "targets": []}]), headers={"Cache-Control": "no-store"})
