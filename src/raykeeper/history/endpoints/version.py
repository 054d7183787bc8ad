"""`/api/version` and `/api/ray/version`: clients check them before anything else."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response
from raykeeper.history.asked import Asked

POLLED = "/api/version"
JOB_API_VERSION = "4"  # of the job API in every Ray since 2.7


async def get_version(_: Request, asked: Asked) -> Response:
    return json_response(version(asked))


def version(asked: Asked) -> dict[str, Any]:
    """As the head said; where it never did, what the collector wrote down at the start."""
    record = asked.session.record
    known = {
        "version": JOB_API_VERSION,
        "ray_version": record.ray_version if record else "",
        "ray_commit": record.ray_commit if record else "",
    }
    polled = asked.polled_body(POLLED, dict[str, Any]) or {}
    return {**known, **polled, "session_name": asked.session.id.session}
