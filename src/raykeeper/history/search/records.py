# ruff: noqa: S608 - statements are made of constants of this file and of a matcher's condition; values are bound
"""Errors and events of a session: what its tables say of failed tasks, actors, workers and nodes, its jobs' messages,
and what Kubernetes said. Newest first; the same message of one function is one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from raykeeper.history.entities.cluster_end import NODE_NAME
from raykeeper.history.entities.job import Job
from raykeeper.history.entities.job_list import session_jobs
from raykeeper.history.query.context import SessionContext
from raykeeper.history.search.match import Matcher
from raykeeper.history.search.model import Kind, RecordPlace, SearchRequest, Skipped
from raykeeper.layout.kube_facts import EventFact
from raykeeper.times import from_ns, to_ns

What = Literal["task", "actor", "job", "worker", "node", "Kubernetes"]
KIND_OF: dict[What, Kind] = {
    "task": "error",
    "actor": "error",
    "job": "error",
    "worker": "event",
    "node": "event",
    "Kubernetes": "event",
}
_NEWEST = RecordPlace(2**62, "")
_MILLISECOND = 1_000_000

_DEATH = """coalesce(nullif(concat_ws(chr(10), json_extract_string(death_cause, '$.*.errorMessage')[1],
            json_extract_string(death_cause, '$.*.formattedExceptionString')[1]), ''), death_cause)"""
"""What Ray says of an actor's death, out of its JSON."""

_SOURCES: dict[What, str] = {
    "task": """
        SELECT end_ns AS ns, task_id || '-' || attempt_number AS id, job_id, node_id,
               concat_ws(': ', nullif(func_or_class_name, ''), error_type) AS title, error_message AS message
        FROM unfinished_tasks WHERE error_message IS NOT NULL
    """,
    "actor": f"""
        SELECT end_ns AS ns, actor_id AS id, job_id, node_id, class_name AS title, {_DEATH} AS message
        FROM actors WHERE death_cause IS NOT NULL
    """,
    "worker": """
        SELECT end_ns AS ns, worker_id AS id, job_id, node_id, concat_ws(' ', 'worker', pid, exit_type) AS title,
               exit_detail AS message
        FROM workers WHERE exit_detail IS NOT NULL
    """,
    "node": f"""
        SELECT end_ns AS ns, node_id AS id, NULL AS job_id, node_id,
               concat_ws(' ', {NODE_NAME}, death_reason) AS title, death_message AS message
        FROM nodes WHERE death_message IS NOT NULL
    """,
}

_FOUND = """
    SELECT what, max(coalesce(ns, 0)) AS ns, max(id) AS id, job_id, node_id, title, message, count(*) AS number
    FROM ({sources})
    WHERE {condition} AND ($job = '' OR job_id = $job) AND starts_with(coalesce(node_id, ''), $node)
      AND coalesce(ns, 0) >= $since AND coalesce(ns, 0) < $until
    GROUP BY what, job_id, node_id, title, message
    HAVING (max(coalesce(ns, 0)), max(id)) < ($before_ns, $before_id)
    ORDER BY ns DESC, id DESC LIMIT $limit
"""


@dataclass(frozen=True)
class Record:
    """One message."""

    what: What
    ns: int
    """When it came, last; 0 where nobody knows."""
    id: str
    job_id: str
    node_id: str
    title: str
    message: str
    count: int = 1

    @property
    def place(self) -> RecordPlace:
        return RecordPlace(self.ns, self.id)

    @property
    def at(self) -> datetime | None:
        return from_ns(self.ns) if self.ns else None


async def find_records(
    context: SessionContext,
    wanted: SearchRequest,
    matcher: Matcher,
    after: RecordPlace | None,
    limit: int,
    skipped: Skipped,
) -> list[Record]:
    """The newest of those that may have a line that is a hit, behind a place."""
    before = after or _NEWEST
    others = [*await _of_jobs(context, wanted), *await _of_kubernetes(context, wanted, skipped)]
    in_time = [record for record in others if wanted.has_time(record.ns, record.ns) and _is_behind(record, before)]
    found = [record for record in in_time if matcher.find(record.message.encode(errors="replace"))]
    found += await _of_tables(context, wanted, matcher, before, limit)
    return sorted(found, key=lambda record: (record.ns, record.id), reverse=True)[:limit]


async def _of_tables(
    context: SessionContext, wanted: SearchRequest, matcher: Matcher, before: RecordPlace, limit: int
) -> list[Record]:
    sources = [f"SELECT '{what}' AS what, * FROM ({_SOURCES[what]})" for what in _SOURCES if _wants(wanted, what)]
    if not sources:
        return []
    rows = await context.rows(
        _FOUND.format(sources=" UNION ALL ".join(sources), condition=matcher.condition("message")),
        {
            "pattern": matcher.pattern,
            "job": wanted.job_id,
            "node": wanted.node_id,
            "since": to_ns(wanted.since) if wanted.since else 0,
            "until": to_ns(wanted.until) if wanted.until else _NEWEST.ns,
            "before_ns": before.ns,
            "before_id": before.id,
            "limit": limit,
        },
    )
    return [_record(row) for row in rows]


def _record(row: dict[str, Any]) -> Record:
    return Record(
        what=row["what"],
        ns=row["ns"],
        id=row["id"],
        job_id=row["job_id"] or "",
        node_id=row["node_id"] or "",
        title=row["title"] or "",
        message=row["message"],
        count=row["number"],
    )


async def _of_jobs(context: SessionContext, wanted: SearchRequest) -> list[Record]:
    if not _wants(wanted, "job"):
        return []
    found = [_of_job(job) for job in await session_jobs(context) if job.message and job.status == "FAILED"]
    of_job = {wanted.job_id, wanted.submission_id} - {""}
    return [one for one in found if wanted.has_node(one.node_id) and (not of_job or {one.id, one.job_id} & of_job)]


def _of_job(job: Job) -> Record:
    ended_ns = to_ns(job.ended_at) or 0
    title = f"job {job.name} failed"
    return Record("job", ended_ns, job.name, job.job_id or "", job.driver_node_id, title, job.message or "")


async def _of_kubernetes(context: SessionContext, wanted: SearchRequest, skipped: Skipped) -> Iterable[Record]:
    if not _wants(wanted, "Kubernetes") or wanted.node_id:
        return ()
    facts = await context.kube_facts()
    if not facts.is_complete:
        skipped.add("what Kubernetes said", "some of it was lost or could not be read")
    return _of_events(facts.events)


def _of_events(events: Iterable[EventFact]) -> Iterator[Record]:
    for event in events:
        title = f"{event.about_kind} {event.about_name}: {event.reason}"
        yield Record("Kubernetes", to_ns(event.at), event.uid, "", "", title, event.message, event.count)


def _wants(wanted: SearchRequest, what: What) -> bool:
    """Nodes and Kubernetes say nothing about one job."""
    is_of_job = bool(wanted.job_id or wanted.submission_id)
    return KIND_OF[what] in wanted.kinds and not wanted.files and not (is_of_job and what in ("node", "Kubernetes"))


def _is_behind(record: Record, place: RecordPlace) -> bool:
    return (record.ns, record.id) < (place.ns, place.id)
