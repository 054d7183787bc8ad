"""One session at a glance: asks the tables and the records, and puts the answers together."""

from __future__ import annotations

from dataclasses import replace

from raykeeper.history.entities.job_list import session_jobs
from raykeeper.history.overview.facts import facts_of, losses_of, newest_jobs, until_ns
from raykeeper.history.overview.model import JobRow, SessionOverview
from raykeeper.history.overview.resources import node_rows, nodes_over_time, resource_hours
from raykeeper.history.overview.sql import STRETCH
from raykeeper.history.overview.task_counts import Bins, bins_over, functions_of, task_series, to_counts
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.report.make import reports_on_jobs, why_in_one_line
from raykeeper.history.text import cut_at_word
from raykeeper.masking import masked_text
from raykeeper.times import to_ns

JOBS_LIMIT = 50
_FAILURE_CHARS = 300


async def session_overview(context: SessionContext) -> SessionOverview:
    facts, until = await facts_of(context), until_ns(context.session)
    nodes = await node_rows(context)
    [stretch] = await context.rows(STRETCH, {"job_id": None})
    bins = _bins(stretch, nodes, to_ns(facts.started_at) if facts.started_at else None, until)
    jobs, left_out = newest_jobs(await session_jobs(context), JOBS_LIMIT)
    return SessionOverview(
        facts=facts,
        counts=to_counts(stretch),
        tasks=await task_series(context, None, bins),
        functions=await functions_of(context, None),
        nodes=nodes_over_time(nodes, bins, until),
        resources=await resource_hours(context, nodes, until),
        jobs=await _with_causes(context, jobs),
        jobs_left_out=left_out,
        losses=losses_of(context.session, stretch["attempts"]),
    )


async def _with_causes(context: SessionContext, jobs: tuple[JobRow, ...]) -> tuple[JobRow, ...]:
    reports = await reports_on_jobs(context, {job.id: job.status for job in jobs})
    lines = (masked_text(why_in_one_line(job.status, job.message, reports.get(job.id))) for job in jobs)
    return tuple(replace(job, failure=cut_at_word(line, _FAILURE_CHARS)) for job, line in zip(jobs, lines, strict=True))


def _bins(stretch: Row, nodes: list[Row], started: int | None, until: int) -> Bins:
    """From the first sign of life to the end: clocks of nodes differ, and tasks may end after their session."""
    begins = [started, stretch["first_ns"], *(node["started_ns"] for node in nodes)]
    begin = min((ns for ns in begins if ns is not None), default=until)
    return bins_over(begin, max(until, stretch["last_ns"] or until))
