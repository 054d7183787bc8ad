"""`/api/jobs/{id}/logs` and its tail: what the driver of a submitted job printed."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from raykeeper.history.entities.job import Job
from raykeeper.history.entities.job_list import named_job
from raykeeper.history.http.responses import JSON, text_response
from raykeeper.history.http.streaming import client_of, refusal, streamed
from raykeeper.history.logs.store import FilePlace
from raykeeper.history.logs.stream_slots import NoSlot, Slot
from raykeeper.history.query.context import SessionContext
from raykeeper.layout.logs import StoredLog

Ask = Callable[[], Awaitable[SessionContext]]

NOT_SUBMITTED = "Can only get logs of submission type jobs"
_TAIL_SECONDS = 1.0


async def get_job_logs(request: Request, context: SessionContext) -> Response:
    """The whole log in one JSON text, written while it is read."""
    wanted = request.path_params["job_or_submission_id"]
    job = await named_job(context, wanted)
    if job is None or not job.is_submission:
        return _refusal(wanted, job)
    stored = await _driver_log(context, job)
    pieces = context.logs.reader.stream(stored, 0, stored.size) if stored else _no_pieces()
    return await streamed(request, context.logs.bodies, _as_json(_as_text(pieces)), headers={}, media_type=JSON)


async def tail_job_logs(websocket: WebSocket, ask: Ask) -> None:
    """The log as text frames, and what follows until the job or its session is over; then close.

    `ask` opens the session again: a job that ran when somebody began to look may have ended since.
    """
    wanted, context = websocket.path_params["job_or_submission_id"], await ask()
    job = await named_job(context, wanted)
    if job is None or not job.is_submission:
        await websocket.send_denial_response(_refusal(wanted, job))
        return
    try:
        slot = context.logs.bodies.take(client_of(websocket))
    except NoSlot:
        await websocket.send_denial_response(refusal())
        return
    async with slot.held():
        await _send_tail(websocket, slot, context, job, _ending(ask, job.name))


async def _send_tail(
    websocket: WebSocket, slot: Slot, context: SessionContext, job: Job, is_over: Callable[[], Awaitable[bool]]
) -> None:
    await websocket.accept()
    try:
        if stored := await _driver_log(context, job):
            place = FilePlace(context.session.id, _driver_node(context, job), stored.generation)
            async for text in _as_text(context.logs.follow(place, 0, _TAIL_SECONDS, is_over)):
                with slot.sending():
                    await websocket.send_text(text)
        await websocket.close()
    except WebSocketDisconnect:
        return


def _ending(ask: Ask, wanted: str) -> Callable[[], Awaitable[bool]]:
    async def is_over() -> bool:
        context = await ask()
        if await context.is_over():
            return True
        job = await named_job(context, wanted)
        return job is None or not job.is_open

    return is_over


def _refusal(wanted: str, job: Job | None) -> Response:
    if job is None:
        return text_response(f"Job {wanted} does not exist", 404)
    return text_response(NOT_SUBMITTED, 400)


async def _driver_log(context: SessionContext, job: Job) -> StoredLog | None:
    node_id = _driver_node(context, job)
    return (await context.logs.files(context.session.id, node_id)).by_path.get(job.log_name) if node_id else None


def _driver_node(context: SessionContext, job: Job) -> str:
    """Where the driver ran. A job at work whose head died before it named a node was on the head, most likely.

    A job that ended without a node never had a driver, and Ray shows no log of it.
    """
    record = context.session.record
    if job.driver_node_id or record is None or not (job.is_open or job.is_cut_off):
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
