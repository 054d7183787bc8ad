"""What the frontend asks about the cluster as a whole: metadata, ids, status."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import dashboard_response, json_response
from raykeeper.history.asked import Asked

METADATA = "/api/v0/cluster_metadata"
STATUS = "/api/cluster_status"
FORMATTED_STATUS = "/api/cluster_status?format=1"
CLUSTER_ID = "/cluster_id"


async def get_cluster_metadata(_: Request, asked: Asked) -> Response:
    polled = asked.polled_body(METADATA, dict[str, Any])
    if polled is not None:
        return json_response(polled)
    record = asked.session.record
    known = {
        "rayVersion": record.ray_version if record else "",
        "pythonVersion": record.python_version if record else "",
        "rayInitCluster": False,
    }
    return dashboard_response("", known)


async def get_cluster_status(request: Request, asked: Asked) -> Response:
    """The autoscaler's report as it was polled last."""
    is_formatted = request.query_params.get("format", "0") == "1"
    polled = asked.polled_body(FORMATTED_STATUS if is_formatted else STATUS, dict[str, Any])
    if polled is not None:
        return json_response(polled)
    if is_formatted:
        return dashboard_response("Got formatted cluster status.", {"clusterStatus": "No cluster status."})
    unknown = {"autoscalingStatus": None, "autoscalingError": None, "clusterStatus": None}
    return dashboard_response("Got cluster status.", unknown)


async def get_cluster_id(_: Request, asked: Asked) -> Response:
    """Ray's own id if it was polled, else that of the RayCluster."""
    polled = asked.polled_body(CLUSTER_ID, dict[str, Any])
    if polled is not None:
        return json_response(polled)
    record = asked.session.record
    return dashboard_response("Fetched cluster id", {"clusterId": record.cluster_uid if record else ""})


async def get_usage_stats_enabled(_: Request, __: Asked) -> Response:
    """A history server reports nothing to anybody."""
    data = {"usageStatsEnabled": False, "usageStatsPromptEnabled": True}
    return dashboard_response("Fetched usage stats enabled", data)
