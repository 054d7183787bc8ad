# ruff: noqa: S608 - relations are made of texts of our own
"""Marks nodes, actors, workers and jobs that outlived their cluster as dead, with the cluster's end time and reason.

Ray's GCS dies with the cluster and sends no ends, so the tables keep Ray's last state and, beside it, what closed the
row. Tasks keep their state, which shows what the cluster was doing. The frontend's node pages keep such nodes alive,
because the frontend offers logs only of living nodes.
"""

from __future__ import annotations

import json

from raykeeper.history.entities.job import CLUSTER_ENDED

_BY_CLUSTER = "closed_by = 'cluster'"
_DEATH_CAUSE = json.dumps({"actorDiedErrorContext": {"errorMessage": CLUSTER_ENDED}})
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

_ACTORS = """(
    SELECT * REPLACE (
        if({is_closed}, 'DEAD', state) AS state,
        if({is_closed}, closed_ns, end_ns) AS end_ns,
        if({is_closed}, '{cause}', death_cause) AS death_cause
    ) FROM actors WHERE has_definition
)"""
ACTORS = _ACTORS.format(is_closed=_BY_CLUSTER, cause=_DEATH_CAUSE)
FRONTEND_ACTORS = _ACTORS.format(is_closed=f"{_BY_CLUSTER} AND class_name <> 'ServeController'", cause=_DEATH_CAUSE)
"""As the frontend shows actors: it takes a dead controller for the reason of an unhealthy Serve, which never was."""

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
           NULL::VARCHAR AS exit_type,
           if(finished_ns IS NULL AND {_BY_CLUSTER}, '{CLUSTER_ENDED}', NULL) AS exit_detail
    FROM jobs WHERE has_definition
)"""
"""No event says how a driver went; where the dashboard was asked, its answer is put in (`workers.py`)."""
