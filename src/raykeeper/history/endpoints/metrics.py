"""`/api/grafana_health`, `/api/prometheus_health`, `/api/prometheus/sd`: where the metrics of a past session are seen.

Metrics stay in the user's own Prometheus. The frontend's panels show the past when Grafana's address comes with the
name of the past session.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import dashboard_response, json_response
from raykeeper.history.asked import Asked

DISABLED = "DISABLED"
NOT_SET = "RAY_GRAFANA_HOST is not set for the history server"

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


async def get_grafana_health(_: Request, asked: Asked) -> Response:
    links = asked.metrics
    if links.grafana_host == DISABLED:
        return dashboard_response("Grafana disabled", {"grafanaHost": DISABLED})
    if not links.grafana_host:
        return dashboard_response("Grafana healthcheck failed", {"exception": NOT_SET}, 500)
    data = {
        "grafanaHost": links.grafana_host,
        "grafanaOrgId": links.grafana_org_id,
        "sessionName": asked.session.id.session,
        "dashboardUids": _DASHBOARDS,
        "dashboardDatasource": links.prometheus_name,
        "grafanaClusterFilter": links.grafana_cluster_filter,
    }
    return dashboard_response("Grafana running", data)


async def get_prometheus_health(_: Request, asked: Asked) -> Response:
    """Panels are drawn only if both answer: where there is a Grafana, its data source is taken to be there."""
    if asked.metrics.grafana_host in ("", DISABLED):
        return dashboard_response("prometheus healthcheck failed.", {"reason": NOT_SET}, 500)
    return dashboard_response("prometheus running", {})


async def get_prometheus_targets(_: Request, __: Asked) -> Response:
    """Nothing is left to scrape."""
    return json_response([{"labels": {"job": "ray"}, "targets": []}], headers={"Cache-Control": "no-store"})
