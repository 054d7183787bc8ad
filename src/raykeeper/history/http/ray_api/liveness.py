"""Probes of a live cluster (health, profiling, auth mode), answered for a session that is over."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import dashboard_response, json_response, not_found_response
from raykeeper.history.query.context import SessionContext
from raykeeper.masking import masked

AUTHENTICATION_COOKIE = "ray-authentication-token"

DRIVERS = """
    SELECT count(*) FILTER (WHERE finished_ns IS NULL) AS active, max(finished_ns) AS last_finished_ns
    FROM jobs WHERE has_definition
"""

_PROFILING_DEFAULTS = {
    "native": False,
    "subprocesses": False,
    "idle": False,
    "leaks": False,
    "tracePythonAllocators": False,
    "cpuDuration": 5,
    "memoryDuration": 10,
    "maxDuration": 60,
    "cpuFormat": "flamegraph",
    "memoryFormat": "flamegraph",
    "pyspyNativeSupported": True,
}


async def get_authentication_mode(_: Request, __: SessionContext) -> Response:
    """No Ray token is wanted here: whoever got this far passed the history server's own check."""
    response = json_response(masked({"authentication_mode": "disabled"}))
    response.delete_cookie(AUTHENTICATION_COOKIE)
    return response


async def get_runtime_env_redaction(_: Request, __: SessionContext) -> Response:
    return dashboard_response("", {"redactionEnabled": True})


async def get_profiling_enabled(_: Request, __: SessionContext) -> Response:
    """There is no process to look into, so the frontend hides its buttons."""
    return dashboard_response("", {"profilingEnabled": False, "profilingDefaults": _PROFILING_DEFAULTS})


async def get_gcs_health(_: Request, __: SessionContext) -> Response:
    return Response("success", media_type="application/text; charset=utf-8")


async def get_platform_events(_: Request, __: SessionContext) -> Response:
    """404 hides the frontend's tab."""
    return not_found_response()


async def get_component_activities(_: Request, context: SessionContext) -> Response:
    """Whether drivers were at work when the session was last heard of."""
    [drivers] = await context.rows(DRIVERS)
    active, finished = drivers["active"], drivers["last_finished_ns"]
    activity = {
        "is_active": "ACTIVE" if active else "INACTIVE",
        "reason": f"Number of active drivers: {active}" if active else None,
        "timestamp": context.session.as_of.timestamp(),
        "last_activity_at": None if finished is None else finished // 1_000_000 / 1000,
    }
    return json_response(masked({"driver": activity}))
