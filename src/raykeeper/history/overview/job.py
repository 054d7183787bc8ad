"""One job at a glance: its timeline, functions and resources."""

from __future__ import annotations

from raykeeper.history.entities.job_list import find_job
from raykeeper.history.overview.facts import facts_of, job_row, until_ns
from raykeeper.history.overview.lanes import (
    FUNCTION_LANES,
    NODE_LANES,
    actor_lanes,
    kube_lanes,
    node_lanes,
    task_lanes,
    why_empty,
)
from raykeeper.history.overview.model import Functions, JobOverview, JobRow, Timeline
from raykeeper.history.overview.resources import job_resources, node_rows
from raykeeper.history.overview.sql import JOB_ACTORS, JOB_NODES, STRETCH
from raykeeper.history.overview.task_counts import Bins, bins_over, functions_of, task_series, to_counts
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.masking import masked_value
from raykeeper.times import from_ns, to_ns

_NODES_LIMIT = 1000


async def job_overview(context: SessionContext, wanted: str) -> JobOverview:
    """Raises JobUnknown. A job that never had a driver has no tasks, actors or nodes."""
    found = await find_job(context, wanted)
    job = job_row(found)
    job_id = found.job_id or ""
    [stretch] = await context.rows(STRETCH, {"job_id": job_id})
    bins = _job_bins(job, stretch, until_ns(context.session))
    functions = await functions_of(context, job_id)
    return JobOverview(
        facts=await facts_of(context),
        job=job,
        runtime_env=masked_value(found.runtime_env),
        counts=to_counts(stretch),
        tasks=await task_series(context, job_id, bins),
        functions=functions,
        resources=await job_resources(context, job_id, bins.end_ns),
        timeline=await _timeline(context, job_id, bins, functions, stretch["attempts"]),
    )


def _job_bins(job: JobRow, stretch: Row, until: int) -> Bins:
    """From the job's first sign of life to its last; clocks of nodes differ, so its tasks may reach beyond."""
    known = [to_ns(time) for time in (job.started_at, job.ended_at) if time]
    if job.ended_at is None:
        known.append(until)
    known += [ns for ns in (stretch["first_ns"], stretch["last_ns"]) if ns is not None]
    return bins_over(min(known), max(known))


async def _timeline(context: SessionContext, job_id: str, bins: Bins, functions: Functions, attempts: int) -> Timeline:
    begin, end = from_ns(bins.begin_ns), from_ns(bins.end_ns)
    actors = await context.rows(JOB_ACTORS, {"job_id": job_id, "row_limit": NODE_LANES})
    used = {row["node_id"]: row for row in await context.rows(JOB_NODES, {"job_id": job_id, "row_limit": _NODES_LIMIT})}
    kube = await context.kube_facts()
    events, more_events = kube_lanes(kube, begin, end)
    lanes = (
        *await task_lanes(context, job_id, bins, functions, attempts),
        *actor_lanes(actors, bins.end_ns),
        *node_lanes(await node_rows(context), used, bins.end_ns),
        *events,
    )
    number = len(functions.rows) + functions.left_out
    return Timeline(
        begin,
        end,
        lanes,
        left_out={
            "tasks": max(0, number - FUNCTION_LANES),
            "actors": max(0, (actors[0]["actors"] if actors else 0) - NODE_LANES),
            "nodes": max(0, len(used) - NODE_LANES),
            "kubernetes": more_events,
        },
        kubernetes=why_empty(kube),
    )
