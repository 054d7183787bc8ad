# ruff: noqa: S608 - relations are made of texts of our own
"""What was still there when its cluster went: the state API says that it is over, since that time and for that reason.

Ray's GCS dies with the cluster and sends nobody's end, so the tables have Ray's last word and beside it what closed a
row. Tasks keep the state they were in, which tells what the cluster was doing. The frontend's node pages keep such
nodes alive: it offers the logs of living nodes alone.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from raykeeper.history.asked import Session
from raykeeper.history.opened import OpenedSession

CLUSTER_ENDED = "Cluster ended"
"""In place of Ray's own reason."""

_SHUT_DOWN = "Shutdown by ray.shutdown()."  # Ray's words for a driver that ended, by an exception as well
_BY_CLUSTER = "closed_by = 'cluster'"
_DEATH_CAUSE = json.dumps({"actorDiedErrorContext": {"errorMessage": CLUSTER_ENDED}})
OPEN_JOBS = ("PENDING", "RUNNING")
"""Statuses of a job that is not over."""

NODE_NAME = "coalesce(nullif(node_name, ''), node_ip)"
"""A node that nobody named is called by its address; an older Ray, as 2.52, does not say even that."""

NODES = f"""(
    SELECT * REPLACE (
        {NODE_NAME} AS node_name,
        if({_BY_CLUSTER}, 'DEAD', state) AS state,
        if({_BY_CLUSTER}, closed_ns, end_ns) AS end_ns,
        if({_BY_CLUSTER}, '{CLUSTER_ENDED}', death_message) AS death_message
    ) FROM nodes WHERE has_definition
)"""

ACTORS = f"""(
    SELECT * REPLACE (
        if({_BY_CLUSTER}, 'DEAD', state) AS state,
        if({_BY_CLUSTER}, closed_ns, end_ns) AS end_ns,
        if({_BY_CLUSTER}, '{_DEATH_CAUSE}', death_cause) AS death_cause
    ) FROM actors WHERE has_definition
)"""

WORKERS = f"""(
    SELECT * REPLACE (
        is_alive AND NOT coalesce({_BY_CLUSTER}, false) AS is_alive,
        if({_BY_CLUSTER}, closed_ns // 1000000, end_ms) AS end_ms,
        if({_BY_CLUSTER}, '{CLUSTER_ENDED}', exit_detail) AS exit_detail
    ) FROM workers WHERE has_definition
)"""
"""Why each process ended is unknown, so none has an exit type."""

DRIVERS = f"""(
    SELECT job_id, driver_pid, driver_node_id, created_ns,
           coalesce(finished_ns, if({_BY_CLUSTER}, closed_ns, NULL)) AS ended_ns,
           if(finished_ns IS NULL, NULL, 'INTENDED_USER_EXIT') AS exit_type,
           if(finished_ns IS NULL, if({_BY_CLUSTER}, '{CLUSTER_ENDED}', NULL), '{_SHUT_DOWN}') AS exit_detail
    FROM jobs WHERE has_definition
)"""
"""No event says how a driver went: one whose job finished is taken for one that Ray saw go, as nearly all do."""


def ended_at(session: Session) -> datetime | None:
    """When the cluster ended; None while it runs."""
    return session.ended_at if isinstance(session, OpenedSession) else None


def ended_job(job: dict[str, Any], cluster_ended_at: datetime | None) -> dict[str, Any]:
    """The job; one that was at work when its cluster ended has failed with it."""
    if cluster_ended_at is None or job.get("status") not in OPEN_JOBS:
        return job
    end = {"status": "FAILED", "message": CLUSTER_ENDED, "end_time": int(cluster_ended_at.timestamp() * 1000)}
    return {**job, **end}
