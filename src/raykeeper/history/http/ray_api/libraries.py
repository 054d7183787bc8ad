"""Ray Data, Serve and Train as they were polled last."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import polled_response, text_response
from raykeeper.history.query.context import SessionContext

DATASETS = "/api/data/datasets/"


async def get_datasets(request: Request, context: SessionContext) -> Response:
    """Empty for a job without datasets: such answers are not stored."""
    path = f"{DATASETS}{quote(request.path_params['job_id'], safe='')}"
    return await polled_response(await context.polled_body(path, dict[str, Any]) or {"datasets": []})


_LOOKED_BACK = 50  # answers of Serve, one for each change
SERVE = "/api/serve/applications/"
API_TYPES = ("imperative", "declarative")
SERVE_NEVER_RAN: dict[str, Any] = {"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": None}
"""What Ray answers where Serve does not run."""


async def get_serve_applications(request: Request, context: SessionContext) -> Response:
    api_type = request.query_params.get("api_type")
    if api_type and api_type.lower() not in API_TYPES:
        return text_response(f"Invalid 'api_type' value: '{api_type}'. Must be one of: {', '.join(API_TYPES)}", 400)
    details = await context.polled_body(SERVE, dict[str, Any]) or SERVE_NEVER_RAN
    if not details.get("applications") and await context.is_over():
        details = await _last_served(context) or details
    return await polled_response(_only_of_type(details, api_type))


async def _last_served(context: SessionContext) -> dict[str, Any] | None:
    """The last answer with an application in it: programs shut Serve down before they end."""
    keys = await context.session.polled_versions(SERVE)
    for key in reversed(keys[-_LOOKED_BACK:]):
        answer = await context.session.history.read(key)
        if answer is None or answer.status != 200:
            continue
        try:
            details = await asyncio.to_thread(msgspec.json.decode, bytes(answer.body), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            continue
        if details.get("applications"):
            return details
    return None


def _only_of_type(details: dict[str, Any], api_type: str | None) -> dict[str, Any]:
    """Applications deployed by code or by configuration, where only those are asked for."""
    applications = details.get("applications")
    if not api_type or not isinstance(applications, dict):
        return details
    wanted = {
        name: app
        for name, app in applications.items()
        if isinstance(app, dict) and app.get("source") == api_type.lower()
    }
    return {**details, "applications": wanted}


RUNS = "/api/train/v2/runs/v1"
OLD_RUNS = "/api/train/v2/runs"
TRAIN_NEVER_RAN = (
    "Train state data is not available. Please make sure Ray Train is running and that the Train state actor is "
    'enabled by setting the RAY_TRAIN_ENABLE_STATE_TRACKING environment variable to "1".'
)


async def get_train_runs(_: Request, context: SessionContext) -> Response:
    return await _polled_runs(context, RUNS)


async def get_old_train_runs(_: Request, context: SessionContext) -> Response:
    """Runs of Train's first version, which the collector asks for only where it is told to."""
    return await _polled_runs(context, OLD_RUNS)


async def _polled_runs(context: SessionContext, path: str) -> Response:
    polled = await context.polled_body(path, dict[str, Any])
    return text_response(TRAIN_NEVER_RAN, 500) if polled is None else await polled_response(polled)
