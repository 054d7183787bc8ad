"""What a session's own records say of it: state, times, versions and jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from raykeeper.history.asked import Asked, Session
from raykeeper.history.endpoints.cluster import METADATA
from raykeeper.history.endpoints.ended import OPEN_JOBS
from raykeeper.history.opened import OpenedSession
from raykeeper.history.overview.bins import to_ns
from raykeeper.history.overview.model import JobRow, SessionFacts, SessionState
from raykeeper.history.report.shaping import job_outcome
from raykeeper.history.secretpatterns import masked_text
from raykeeper.layout.records import HEAD_LOST


def facts_of(asked: Asked) -> SessionFacts:
    session, record = asked.session, asked.session.record
    opened = session if isinstance(session, OpenedSession) else None
    total = opened.progress.total_bytes if opened else 0
    metadata = _metadata(asked)
    return SessionFacts(
        namespace=session.id.namespace,
        cluster=session.id.cluster,
        session=session.id.session,
        state=state_of(session),
        started_at=record.started_at if record else None,
        ended_at=opened.ended_at if opened else None,
        as_of=session.as_of,
        ray_version=(record.ray_version if record else "") or metadata.get("rayVersion", ""),
        python_version=(record.python_version if record else "") or metadata.get("pythonVersion", ""),
        owner_kind=record.owner_kind if record else "",
        owner_name=record.owner_name if record else "",
        cluster_uid=record.cluster_uid if record else "",
        unread_bytes=max(0, total - opened.progress.done_bytes) if opened else 0,
        total_bytes=total,
    )


def state_of(session: Session) -> SessionState:
    """A head that fell silent without an end, and that nobody closed, crashed. Without any node nothing is known."""
    if not isinstance(session, OpenedSession):
        return "unknown"
    if session.ended_at is None:
        return "running" if session.nodes else "unknown"
    return "ended" if _has_end(session) else "crashed"


def until_ns(session: Session) -> int:
    """The end of what is known: of the cluster, or of what was sealed."""
    ended_at = session.ended_at if isinstance(session, OpenedSession) else None
    return to_ns(ended_at or session.as_of)


def job_row(job: Mapping[str, Any]) -> JobRow:
    """A job of Ray's job API. One that still runs has no end, whatever its answer says."""
    outcome, is_open = job_outcome(job), job.get("status") in OPEN_JOBS
    return JobRow(
        id=outcome.submission_id or outcome.job_id or "",
        job_id=outcome.job_id,
        status=outcome.status,
        entrypoint=masked_text(outcome.entrypoint),
        started_at=outcome.started_at,
        ended_at=None if is_open else outcome.ended_at,
        message=masked_text(outcome.message) if outcome.message else None,
        metadata={name: masked_text(str(value)) for name, value in (job.get("metadata") or {}).items()},
    )


def newest_jobs(jobs: Iterable[Mapping[str, Any]], limit: int) -> tuple[tuple[JobRow, ...], int]:
    """The jobs that began last, and how many others there are."""
    long_ago = datetime.fromtimestamp(0, UTC)
    rows = sorted(map(job_row, jobs), key=lambda job: (job.started_at or long_ago, job.id), reverse=True)
    return tuple(rows[:limit]), max(0, len(rows) - limit)


def masked_values(value: Any) -> Any:
    """The same value with what looks like a secret masked in every text of it."""
    if isinstance(value, Mapping):
        return {name: masked_values(part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked_values(part) for part in value]
    return masked_text(value) if isinstance(value, str) else value


def _has_end(session: OpenedSession) -> bool:
    was_closed = session.closed is not None and session.closed.reason != HEAD_LOST
    return was_closed or any(end.role == "head" for end in session.ends)


def _metadata(asked: Asked) -> dict[str, str]:
    data = (asked.polled_body(METADATA, dict[str, Any]) or {}).get("data")
    return {name: str(value) for name, value in data.items() if value} if isinstance(data, dict) else {}
