"""Any path below `/api/` that nothing else answers: what was polled for exactly that path and query.

A user may have the collector ask for more than it does by itself (`RAY_COLLECTOR_ADDITIONAL_ENDPOINTS`). Nobody knows
the shape of such an answer, so it is given back as it was stored, but for its secrets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import JSON, not_found_response, text_response
from raykeeper.history.query.context import SessionContext
from raykeeper.history.store.kuberay.keys import to_stored_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.masking import masked_maybe_json, masked_value

ROUTE = "/api/{path:path}"
LIMIT_BYTES = 32 << 20  # of a body: as much as a collector keeps
TOO_LARGE = 413
_TEXT = "text/plain; charset=utf-8"
_BELOW = "/api/"


class PolledAnswers:
    """Gives kept answers back, one at a time: while it is masked, a large one takes ten times its size in memory."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def get(self, request: Request, context: SessionContext) -> Response:
        """Ray's 404 where nobody had that path and query polled."""
        answer = _find_polled(context.session.polled, _requested_path(request))
        if answer is None:
            return not_found_response()
        body = bytes(answer.body)
        if len(body) > LIMIT_BYTES:
            return text_response(f"the answer has {len(body)} bytes; at most {LIMIT_BYTES} are served", TOO_LARGE)
        try:
            async with self._turn:
                text, media_type = await asyncio.to_thread(_masked_body, body)
        except RecursionError:
            return text_response("the answer is nested too deeply for its secrets to be found", TOO_LARGE)
        # Never a page: what a program of somebody wrote must not run in a reader's browser.
        return Response(text, headers={"X-Content-Type-Options": "nosniff"}, media_type=media_type)


def _requested_path(request: Request) -> str:
    """Path below the session's prefix and query, spelled as they came."""
    prefix = request.scope.get("root_path", "")
    path = "/" + "/".join(request.scope["raw_path"].decode("latin-1").split("/")[prefix.count("/") + 1 :])
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _find_polled(polled: Mapping[str, PolledAnswer], path: str) -> PolledAnswer | None:
    """The good answer to that path and query; where only KubeRay's name of it is known, the one of that name."""
    if not path.startswith(_BELOW):
        return None
    found = polled.get(path)
    if found is None:
        name = to_stored_name(path)
        guessed = (answer for answer in polled.values() if answer.is_path_guessed)
        found = next((answer for answer in guessed if to_stored_name(answer.path) == name), None)
    return found if found and found.status == 200 else None


def _masked_body(body: bytes) -> tuple[bytes, str]:
    """What is sent, and its type: JSON without secrets stays byte for byte. Raises RecursionError."""
    text = body.decode()
    value = _loaded(text)
    if isinstance(value, str):  # so the answer was no JSON, or none that is standard: Python writes NaN
        text, value = value, _loaded(value)
    if isinstance(value, str):
        return masked_maybe_json(text).encode(errors="replace"), _TEXT
    masked = masked_value(value)
    return (text if masked == value else json.dumps(masked)).encode(errors="replace"), JSON


def _loaded(text: str) -> Any:
    """The value of JSON, or the text where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
