"""The cluster as a whole: versions, time zone, metadata, ids, status."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.cluster import METADATA, version
from raykeeper.history.http.responses import dashboard_response, json_response, polled_response
from raykeeper.history.query.context import SessionContext
from raykeeper.masking import masked

TIMEZONE = "/timezone"

_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)")


class Timezone(msgspec.Struct, frozen=True):
    offset: str = "+00:00"
    value: str = "Etc/UTC"


async def get_timezone(_: Request, context: SessionContext) -> Response:
    return json_response(masked(await _head_timezone(context)))


async def _head_timezone(context: SessionContext) -> Timezone:
    """As the head said; UTC where it never did."""
    return await context.polled_body(TIMEZONE, Timezone) or Timezone()


async def utc_offset(context: SessionContext) -> timedelta:
    match = _OFFSET.fullmatch((await _head_timezone(context)).offset)
    if match is None:
        return timedelta()
    distance = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -distance if match[1] == "-" else distance


async def get_version(_: Request, context: SessionContext) -> Response:
    return json_response(masked(await version(context)))


STATUS = "/api/cluster_status"
FORMATTED_STATUS = "/api/cluster_status?format=1"
CLUSTER_ID = "/cluster_id"


async def get_cluster_metadata(_: Request, context: SessionContext) -> Response:
    polled = await context.polled_body(METADATA, dict[str, Any])
    if polled is not None:
        return await polled_response(polled)
    record = context.session.record
    known = {
        "rayVersion": record.ray_version if record else "",
        "pythonVersion": record.python_version if record else "",
        "rayInitCluster": False,
    }
    return dashboard_response("", known)


async def get_cluster_status(request: Request, context: SessionContext) -> Response:
    """The autoscaler's report as it was polled last."""
    is_formatted = request.query_params.get("format", "0") == "1"
    polled = await context.polled_body(FORMATTED_STATUS if is_formatted else STATUS, dict[str, Any])
    if polled is not None:
        return await polled_response(polled)
    if is_formatted:
        return dashboard_response("Got formatted cluster status.", {"clusterStatus": "No cluster status."})
    unknown = {"autoscalingStatus": None, "autoscalingError": None, "clusterStatus": None}
    return dashboard_response("Got cluster status.", unknown)


async def get_cluster_id(_: Request, context: SessionContext) -> Response:
    """Ray's own id if it was polled, else that of the RayCluster."""
    polled = await context.polled_body(CLUSTER_ID, dict[str, Any])
    if polled is not None:
        return await polled_response(polled)
    record = context.session.record
    return dashboard_response("Fetched cluster id", {"clusterId": record.cluster_uid if record else ""})


async def get_usage_stats_enabled(_: Request, __: SessionContext) -> Response:
    """A history server reports nothing to anybody."""
    data = {"usageStatsEnabled": False, "usageStatsPromptEnabled": True}
    return dashboard_response("Fetched usage stats enabled", data)
