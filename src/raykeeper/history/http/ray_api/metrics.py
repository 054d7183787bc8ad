"""`/api/grafana_health`, `/api/prometheus_health`, `/api/prometheus/sd`: where the metrics of a past session are seen.

Metrics stay in the user's own Prometheus. The frontend's panels show the past when Grafana's address comes with the
name of the past session.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import dashboard_response, json_response
from raykeeper.history.query.context import SessionContext
from raykeeper.masking import masked

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


async def get_grafana_health(_: Request, context: SessionContext) -> Response:
    grafana = context.grafana
    if grafana.host == DISABLED:
        return dashboard_response("Grafana disabled", {"grafanaHost": DISABLED})
    if not grafana.host:
        return dashboard_response("Grafana healthcheck failed", {"exception": NOT_SET}, 500)
    data = {
        "grafanaHost": grafana.host,
        "grafanaOrgId": grafana.org_id,
        "sessionName": context.session.id.session,
        "dashboardUids": _DASHBOARDS,
        "dashboardDatasource": grafana.prometheus_name,
        "grafanaClusterFilter": grafana.cluster_filter,
    }
    return dashboard_response("Grafana running", data)


async def get_prometheus_health(_: Request, context: SessionContext) -> Response:
    """Panels are drawn only if both answer: where there is a Grafana, its data source is taken to be there."""
    if context.grafana.host in ("", DISABLED):
        return dashboard_response("prometheus healthcheck failed.", {"reason": NOT_SET}, 500)
    return dashboard_response("prometheus running", {})


async def get_prometheus_targets(_: Request, __: SessionContext) -> Response:
    """Nothing is left to scrape."""
    return json_response(masked([{"labels": {"job": "ray"}, "targets": []}]), headers={"Cache-Control": "no-store"})
