"""`/api/train/v2/runs/v1` and `/api/train/v2/runs`: Ray Train as it was polled last."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response, text_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.redaction import masked_deeply

RUNS = "/api/train/v2/runs/v1"
OLD_RUNS = "/api/train/v2/runs"
NEVER_RAN = (
    "Train state data is not available. Please make sure Ray Train is running and that the Train state actor is "
    'enabled by setting the RAY_TRAIN_ENABLE_STATE_TRACKING environment variable to "1".'
)


async def get_train_runs(_: Request, asked: Asked) -> Response:
    return _polled_runs(asked, RUNS)


async def get_old_train_runs(_: Request, asked: Asked) -> Response:
    """Runs of Train's first version, which the collector asks for only where it is told to."""
    return _polled_runs(asked, OLD_RUNS)


def _polled_runs(asked: Asked, path: str) -> Response:
    polled = asked.polled_body(path, dict[str, Any])
    return text_response(NEVER_RAN, 500) if polled is None else json_response(masked_deeply(polled))
