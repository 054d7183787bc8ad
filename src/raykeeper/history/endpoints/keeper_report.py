"""`/api/keeper/v1/…report` and `/report`: why a session or one of its jobs failed, as JSON and as a page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response
from raykeeper.history.asked import Asked
from raykeeper.history.pages.html import message_response
from raykeeper.history.pages.report import report_page
from raykeeper.history.report.making import JobUnknown, make_report


async def get_report(request: Request, asked: Asked) -> Response:
    """Of the whole session, or of the job that the path names."""
    try:
        return json_response(await make_report(asked, request.path_params.get("job_or_submission_id")))
    except JobUnknown as exc:
        return json_response({"error": str(exc)}, 404)


async def get_report_page(request: Request, asked: Asked) -> Response:
    try:
        return report_page(await make_report(asked, request.path_params.get("job_or_submission_id")))
    except JobUnknown as exc:
        return message_response("No such job", str(exc), 404)
