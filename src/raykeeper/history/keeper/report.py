"""Why a session, or one of its jobs, failed."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.remembered import RememberedBodies, last_poll, version_of
from raykeeper.history.keeper.operation import SESSION, Call, NoQuery, Operation
from raykeeper.history.keeper.problems import NotThere
from raykeeper.history.opened import OpenedSession
from raykeeper.history.report.making import JobUnknown, make_report
from raykeeper.history.report.model import Report

_TABLES = ("tasks", "task_list", "workers", "nodes", "actors", "jobs")
_remembered = RememberedBodies()


async def get_report(call: Call[NoQuery]) -> msgspec.Raw:
    """Of the whole session, or of the job that the path names."""
    return msgspec.Raw(await report_body(await call.ask(), call.names.get("job")))


async def report_body(asked: Asked, job: str | None) -> bytes:
    """The report as JSON, remembered while the session stays as it is. Raises NotThere."""
    key = (_version(asked), job)
    body = _remembered.find(key)
    if body is None:
        try:
            body = msgspec.json.encode(await make_report(asked, job))
        except JobUnknown as exc:
            raise NotThere(str(exc)) from exc
        _remembered.keep(key, body)
    return body


def _version(asked: Asked) -> Hashable:
    session = asked.session
    progress = session.progress if isinstance(session, OpenedSession) else None
    return session.id, session.as_of, progress, version_of(session, *_TABLES), last_poll(session)


REPORT_OPERATIONS = (
    Operation("get_session_report", f"{SESSION}/report", "Why a session failed", NoQuery, Report, get_report),
    Operation("get_job_report", f"{SESSION}/jobs/{{job}}/report", "Why a job failed", NoQuery, Report, get_report),
)
