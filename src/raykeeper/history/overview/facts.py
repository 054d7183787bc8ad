"""Facts about a session and its jobs, and what of its data is missing or late. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from raykeeper.history.entities.cluster import METADATA
from raykeeper.history.entities.job import Job, newest_first
from raykeeper.history.ingest.session import Session
from raykeeper.history.overview.model import JobRow, Loss, SessionFacts
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.unknowns import unknowns_of
from raykeeper.history.text import counted
from raykeeper.layout.records import NodeRecord
from raykeeper.masking import masked_text
from raykeeper.times import to_ns


async def facts_of(context: SessionContext) -> SessionFacts:
    session = context.session
    record = session.record
    total = session.progress.total_bytes
    metadata = await _metadata(context)
    return SessionFacts(
        namespace=session.id.namespace,
        cluster=session.id.cluster,
        session=session.id.session,
        state=session.state.state.value,
        is_doubtful=session.state.is_doubtful,
        started_at=record.started_at if record else None,
        ended_at=session.ended_at,
        as_of=session.as_of,
        ray_version=(record.ray_version if record else "") or metadata.get("rayVersion", ""),
        python_version=(record.python_version if record else "") or metadata.get("pythonVersion", ""),
        owner_kind=record.owner_kind if record else "",
        owner_name=record.owner_name if record else "",
        cluster_uid=record.cluster_uid if record else "",
        unread_bytes=max(0, total - session.progress.done_bytes),
        total_bytes=total,
    )


def until_ns(session: Session) -> int:
    """The end of what is known: of the cluster, or of what was sealed."""
    return to_ns(session.ended_at or session.as_of)


def job_row(job: Job) -> JobRow:
    return JobRow(
        id=job.name,
        job_id=job.job_id,
        status=job.status,
        entrypoint=masked_text(job.entrypoint),
        started_at=job.started_at,
        ended_at=job.ended_at,
        message=masked_text(job.message) if job.message else None,
        metadata={name: masked_text(str(value)) for name, value in job.metadata.items()},
    )


def newest_jobs(jobs: Iterable[Job], limit: int) -> tuple[tuple[JobRow, ...], int]:
    """The jobs that began last, and how many others there are."""
    rows = [job_row(job) for job in newest_first(jobs)]
    return tuple(rows[:limit]), max(0, len(rows) - limit)


async def _metadata(context: SessionContext) -> dict[str, str]:
    data = (await context.polled_body(METADATA, dict[str, Any]) or {}).get("data")
    return {name: str(value) for name, value in data.items() if value} if isinstance(data, dict) else {}


_CAPTURED = "/api/v0/tasks"
_LATE_SECONDS = 30.0
"""Younger data is on its way: an idle collector sends every half minute."""
_ODD_CLOCK_SECONDS = 1.0  # less does not change the order of what a person compares
_NODES_NAMED = 5


def losses_of(session: Session, attempts: int) -> tuple[Loss, ...]:
    """What is missing for good, as reports name it too, then what is late or may mislead."""
    return tuple(Loss(what, text) for what, text in _losses(session, attempts))


def _losses(session: Session, attempts: int) -> Iterator[tuple[str, str]]:
    if not attempts and any(path.partition("?")[0] == _CAPTURED for path in session.polled):
        words = "this cluster had no collector: its lists were captured once, and are in the Ray dashboard alone"
        yield "no events", words
    yield from unknowns_of(session)
    yield from _late(session)
    yield from _clocks(session.nodes)


def _late(session: Session) -> Iterator[tuple[str, str]]:
    """What nodes have that did not end, and could not send yet."""
    ended = {end.node_id for end in session.ends}
    behind = [
        node.delivery
        for node in session.nodes
        if node.node_id not in ended and node.delivery.oldest_unsent_seconds > _LATE_SECONDS
    ]
    if behind:
        unsent = sum(delivery.unsent_event_bytes + delivery.unsent_log_bytes for delivery in behind)
        oldest = max(delivery.oldest_unsent_seconds for delivery in behind)
        what = f"{counted(unsent, 'byte')} of {counted(len(behind), 'node')}"
        yield "late", f"{what} are not in the store yet, some for {oldest:.0f} s"
    refused = sum(node.delivery.batches_refused for node in session.nodes)
    if refused:
        yield (
            "late",
            f"{refused:,} batches were refused for want of disk; Ray sends those again until it drops them",
        )


def _clocks(nodes: tuple[NodeRecord, ...]) -> Iterator[tuple[str, str]]:
    odd = [
        (node.hostname or node.node_id, node.clock_offset_seconds)
        for node in nodes
        if node.clock_offset_seconds is not None and abs(node.clock_offset_seconds) > _ODD_CLOCK_SECONDS
    ]
    for name, seconds in odd[:_NODES_NAMED]:
        yield (
            "odd clock",
            f"the clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the store's",
        )
    if len(odd) > _NODES_NAMED:
        yield "odd clock", f"{len(odd) - _NODES_NAMED} more nodes have a clock that differs"
