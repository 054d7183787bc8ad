"""One session at a glance: asks the tables and the records, and puts the answers together."""

from __future__ import annotations

from dataclasses import replace

from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.overview.bins import Bins, bins_over, to_ns
from raykeeper.history.overview.facts import facts_of, newest_jobs, until_ns
from raykeeper.history.overview.losses import losses_of
from raykeeper.history.overview.model import JobRow, SessionOverview
from raykeeper.history.overview.nodes import node_rows, nodes_over_time
from raykeeper.history.overview.resources import resource_hours
from raykeeper.history.overview.statements import STRETCH
from raykeeper.history.overview.taskcounts import functions_of, task_series, to_counts
from raykeeper.history.report.oneline import causes_of_jobs, why_in_one_line
from raykeeper.history.secretpatterns import masked_text

JOBS_LIMIT = 50
_FAILURE_CHARS = 300


async def session_overview(asked: Asked) -> SessionOverview:
    facts, until = facts_of(asked), until_ns(asked.session)
    nodes = await node_rows(asked)
    [stretch] = await asked.rows(STRETCH, {"job_id": None})
    bins = _bins(stretch, nodes, to_ns(facts.started_at) if facts.started_at else None, until)
    jobs, left_out = newest_jobs(await known_jobs(asked), JOBS_LIMIT)
    return SessionOverview(
        facts=facts,
        counts=to_counts(stretch),
        tasks=await task_series(asked, None, bins),
        functions=await functions_of(asked, None),
        nodes=nodes_over_time(nodes, bins, until),
        resources=await resource_hours(asked, nodes, until),
        jobs=await _with_causes(asked, jobs),
        jobs_left_out=left_out,
        losses=losses_of(asked.session, stretch["attempts"]),
    )


async def _with_causes(asked: Asked, jobs: tuple[JobRow, ...]) -> tuple[JobRow, ...]:
    causes = await causes_of_jobs(asked, {job.id: job.status for job in jobs})
    lines = (masked_text(why_in_one_line(job.status, job.message, causes.get(job.id, ""))) for job in jobs)
    return tuple(replace(job, failure=line[:_FAILURE_CHARS]) for job, line in zip(jobs, lines, strict=True))


def _bins(stretch: Row, nodes: list[Row], started: int | None, until: int) -> Bins:
    """From the first sign of life to the end: clocks of nodes differ, and tasks may end after their session."""
    begins = [started, stretch["first_ns"], *(node["started_ns"] for node in nodes)]
    begin = min((ns for ns in begins if ns is not None), default=until)
    return bins_over(begin, max(until, stretch["last_ns"] or until))
