"""`/api/keeper/v1/…report` and `/report`: why a session or one of its jobs failed, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response, raw_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.remembered import RememberedBodies, last_poll, version_of
from raykeeper.history.opened import OpenedSession
from raykeeper.history.pages.html import message_response
from raykeeper.history.pages.report import report_page
from raykeeper.history.report.making import JobUnknown, make_report
from raykeeper.history.report.model import Report

_TABLES = ("tasks", "task_list", "workers", "nodes", "actors", "jobs")
_remembered = RememberedBodies()


async def get_report(request: Request, asked: Asked) -> Response:
    """Of the whole session, or of the job that the path names."""
    try:
        return raw_response(await _report(asked, request.path_params.get("job_or_submission_id")))
    except JobUnknown as exc:
        return json_response({"error": str(exc)}, 404)


async def get_report_page(request: Request, asked: Asked) -> Response:
    try:
        body = await _report(asked, request.path_params.get("job_or_submission_id"))
    except JobUnknown as exc:
        return message_response("No such job", str(exc), 404)
    return report_page(msgspec.json.decode(body, type=Report))


async def _report(asked: Asked, job: str | None) -> bytes:
    """The report as JSON, remembered while the session stays as it is."""
    key = (_version(asked), job)
    body = _remembered.find(key)
    if body is None:
        body = msgspec.json.encode(await make_report(asked, job))
        _remembered.keep(key, body)
    return body


def _version(asked: Asked) -> Hashable:
    session = asked.session
    progress = session.progress if isinstance(session, OpenedSession) else None
    return session.id, session.as_of, progress, version_of(session, *_TABLES), last_poll(session)
