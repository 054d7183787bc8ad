"""`/api/data/datasets/{job id}`: Ray Data as it was polled last."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.redaction import masked_deeply

POLLED = "/api/data/datasets/"


async def get_datasets(request: Request, asked: Asked) -> Response:
    """Empty for a job without datasets: such answers are not stored."""
    path = f"{POLLED}{quote(request.path_params['job_id'], safe='')}"
    return json_response(masked_deeply(asked.polled_body(path, dict[str, Any]) or {"datasets": []}))
