"""`/api/jobs/{id}/logs` and its tail: what the driver of a submitted job printed."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from raykeeper.history.answers import JSON, text_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_file import started
from raykeeper.history.endpoints.logs_jobs import LoggedJob, find_job
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.logs.logstore import FilePlace, LogStore
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import StoredLog

Ask = Callable[[], Awaitable[Asked]]

NOT_SUBMITTED = "Can only get logs of submission type jobs"
_TAIL_SECONDS = 1.0


async def get_job_logs(request: Request, asked: Asked, logs: LogStore) -> Response:
    """The whole log in one JSON text, written while it is read."""
    wanted = request.path_params["job_or_submission_id"]
    job = await find_job(asked, wanted)
    if job is None or not job.submission_id:
        return _refusal(wanted, job)
    stored = await _driver_log(asked, logs, job)
    pieces = logs.reader.stream(stored, 0, stored.size) if stored else _no_pieces()
    return StreamingResponse(await started(_as_json(_as_text(pieces))), media_type=JSON)


async def tail_job_logs(websocket: WebSocket, ask: Ask, logs: LogStore, heartbeats: Heartbeats) -> None:
    """The log as text frames, and what follows until the job or its session is over; then close.

    `ask` opens the session again: a job that ran when somebody began to look may have ended since.
    """
    wanted, asked = websocket.path_params["job_or_submission_id"], await ask()
    job = await find_job(asked, wanted)
    if job is None or not job.submission_id:
        await websocket.send_denial_response(_refusal(wanted, job))
        return
    await websocket.accept()
    try:
        if stored := await _driver_log(asked, logs, job):
            place = FilePlace(asked.session.id, _driver_node(asked, job), stored.generation)
            is_over = _ending(ask, wanted, heartbeats, asked.session.id)
            async for text in _as_text(logs.follow(place, 0, _TAIL_SECONDS, is_over)):
                await websocket.send_text(text)
        await websocket.close()
    except WebSocketDisconnect:
        return


def _ending(ask: Ask, wanted: str, heartbeats: Heartbeats, session: SessionId) -> Callable[[], Awaitable[bool]]:
    async def is_over() -> bool:
        if await heartbeats.is_over(session):
            return True
        job = await find_job(await ask(), wanted)
        return job is None or job.has_ended

    return is_over


def _refusal(wanted: str, job: LoggedJob | None) -> Response:
    if job is None:
        return text_response(f"Job {wanted} does not exist", 404)
    return text_response(NOT_SUBMITTED, 400)


async def _driver_log(asked: Asked, logs: LogStore, job: LoggedJob) -> StoredLog | None:
    node_id = _driver_node(asked, job)
    return (await logs.files(asked.session.id, node_id)).by_path.get(job.log_name) if node_id else None


def _driver_node(asked: Asked, job: LoggedJob) -> str:
    """Where the driver ran. A job at work whose head died before it named a node was on the head, most likely.

    A job that ended without a node never had a driver, and Ray shows no log of it.
    """
    record = asked.session.record
    if job.driver_node_id or job.has_ended or record is None:
        return job.driver_node_id
    return record.head_node_id


async def _no_pieces() -> AsyncIterator[bytes]:
    return
    yield b""


async def _as_text(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Characters, also where one is cut by the end of a piece."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    async for piece in pieces:
        if text := decoder.decode(piece):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


async def _as_json(texts: AsyncIterator[str]) -> AsyncIterator[bytes]:
    yield b'{"logs": "'
    async for text in texts:
        yield json.dumps(text)[1:-1].encode()
    yield b'"}'
