"""`/api/serve/applications/`: Serve as it was polled last."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response, text_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.redaction import masked_deeply

POLLED = "/api/serve/applications/"
API_TYPES = ("imperative", "declarative")
NEVER_RAN: dict[str, Any] = {"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": None}
"""What Ray answers where Serve does not run."""


async def get_serve_applications(request: Request, asked: Asked) -> Response:
    api_type = request.query_params.get("api_type")
    if api_type and api_type.lower() not in API_TYPES:
        return text_response(f"Invalid 'api_type' value: '{api_type}'. Must be one of: {', '.join(API_TYPES)}", 400)
    details = asked.polled_body(POLLED, dict[str, Any]) or NEVER_RAN
    return json_response(masked_deeply(only_of_type(details, api_type)))


def only_of_type(details: dict[str, Any], api_type: str | None) -> dict[str, Any]:
    """Applications deployed by code or by configuration, where only those are asked for."""
    applications = details.get("applications")
    if not api_type or not isinstance(applications, dict):
        return details
    wanted = {name: app for name, app in applications.items() if app.get("source") == api_type.lower()}
    return {**details, "applications": wanted}
