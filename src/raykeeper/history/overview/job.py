"""One job at a glance: its time line, functions and resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.overview import clusterlanes, kubelanes, tasklanes
from raykeeper.history.overview.bins import Bins, bins_over, to_ns, to_time
from raykeeper.history.overview.facts import facts_of, job_row, masked_values, until_ns
from raykeeper.history.overview.model import Functions, JobOverview, JobRow, Timeline
from raykeeper.history.overview.nodes import node_rows
from raykeeper.history.overview.resources import job_resources
from raykeeper.history.overview.statements import JOB_ACTORS, JOB_NODES, STRETCH
from raykeeper.history.overview.taskcounts import functions_of, task_series, to_counts
from raykeeper.history.report.making import JobUnknown

_NODES_LIMIT = 1000


async def find_job(asked: Asked, wanted: str) -> Mapping[str, Any]:
    """By its id or its submission's, as Ray's job API has it, secrets masked. Raises JobUnknown."""
    for job in await known_jobs(asked):
        if wanted in (job.get("submission_id"), job.get("job_id")):
            return job
    raise JobUnknown(f"there is no job {wanted} in session {asked.session.id}")


async def job_overview(asked: Asked, wanted: str) -> JobOverview:
    """Raises JobUnknown. A job that never had a driver has no tasks, actors or nodes."""
    found = await find_job(asked, wanted)
    job, job_id = job_row(found), found.get("job_id") or ""
    [stretch] = await asked.rows(STRETCH, {"job_id": job_id})
    bins = job_bins(job, stretch, until_ns(asked.session))
    functions = await functions_of(asked, job_id)
    return JobOverview(
        facts=facts_of(asked),
        job=job,
        runtime_env=masked_values(found.get("runtime_env") or {}),
        counts=to_counts(stretch),
        tasks=await task_series(asked, job_id, bins),
        functions=functions,
        resources=await job_resources(asked, job_id, bins.end_ns),
        timeline=await _timeline(asked, job_id, bins, functions, stretch["attempts"]),
    )


def job_bins(job: JobRow, stretch: Row, until: int) -> Bins:
    """From the job's first sign of life to its last; clocks of nodes differ, so its tasks may reach beyond."""
    known = [to_ns(time) for time in (job.started_at, job.ended_at) if time]
    if job.ended_at is None:
        known.append(until)
    known += [ns for ns in (stretch["first_ns"], stretch["last_ns"]) if ns is not None]
    return bins_over(min(known), max(known))


async def _timeline(asked: Asked, job_id: str, bins: Bins, functions: Functions, attempts: int) -> Timeline:
    begin, end = to_time(bins.begin_ns), to_time(bins.end_ns)
    actors = await asked.rows(JOB_ACTORS, {"job_id": job_id, "row_limit": clusterlanes.LANES})
    used = {row["node_id"]: row for row in await asked.rows(JOB_NODES, {"job_id": job_id, "row_limit": _NODES_LIMIT})}
    kube = await asked.kube_facts()
    events, more_events = kubelanes.kube_lanes(kube, begin, end)
    lanes = (
        *await tasklanes.task_lanes(asked, job_id, bins, functions, attempts),
        *clusterlanes.actor_lanes(actors, bins.end_ns),
        *clusterlanes.node_lanes(await node_rows(asked), used, bins.end_ns),
        *events,
    )
    number = len(functions.rows) + functions.left_out
    return Timeline(
        begin,
        end,
        lanes,
        left_out={
            "tasks": max(0, number - tasklanes.LANES),
            "actors": max(0, (actors[0]["actors"] if actors else 0) - clusterlanes.LANES),
            "nodes": max(0, len(used) - clusterlanes.LANES),
            "kubernetes": more_events,
        },
        kubernetes=kubelanes.why_empty(kube),
    )
