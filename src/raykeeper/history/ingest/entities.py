# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""The SQL that makes partial rows of nodes, workers, actors and jobs out of their payloads, as `events` files them."""

from __future__ import annotations

from raykeeper.history.ingest.events import CLUSTER_PAYLOADS
from raykeeper.history.tables import ACTOR_STATES, ACTORS, JOBS, NODES, WORKERS

_NO_TIME = 2**63  # Ray prints 2^64 - 1 for a time that was never set


def _milliseconds(field: str) -> str:
    return f"CASE WHEN t.{field} >= {_NO_TIME} THEN -1 ELSE t.{field}::BIGINT END"


_ACTOR_STATE_ORDER = f"list_position({list(ACTOR_STATES)}, t.state)::INTEGER"

_NODES = """
SELECT hex_id(x.nodeId) AS node_id, true AS has_definition, x.nodeIpAddress AS node_ip, x.hostname AS hostname,
    x.nodeName AS node_name, x.labels::VARCHAR AS labels, x.instanceId AS instance_id,
    x.instanceTypeName AS instance_type_name, epoch_ns(x.startTimestamp) AS started_ns
FROM (SELECT nodeDefinitionEvent AS x FROM cluster_events) WHERE x IS NOT NULL
UNION ALL BY NAME
SELECT hex_id(x.nodeId) AS node_id, list_transform(x.stateTransitions, lambda t: {
    'ns': epoch_ns(t.timestamp), 'state': t.state, 'alive_sub_state': t.aliveSubState,
    'resources': t.resources::VARCHAR, 'death_reason': t.deathInfo.reason, 'death_message': t.deathInfo.reasonMessage
}) AS transitions
FROM (SELECT nodeLifecycleEvent AS x FROM cluster_events) WHERE x IS NOT NULL
"""

_WORKERS = f"""
SELECT hex_id(x.workerId) AS worker_id, true AS has_definition, real_id(x.nodeId) AS node_id,
    x.workerType AS worker_type, x.pid AS pid
FROM (SELECT workerDefinitionEvent AS x FROM cluster_events) WHERE x IS NOT NULL
UNION ALL BY NAME
SELECT hex_id(x.workerId) AS worker_id, real_id(x.jobId) AS job_id, list_transform(x.stateTransitions, lambda t: {{
    'ns': epoch_ns(t.timestamp), 'state': t.state, 'launch_ms': {_milliseconds("workerLaunchTimeMs")},
    'launched_ms': {_milliseconds("workerLaunchedTimeMs")}, 'start_ms': {_milliseconds("startTimeMs")},
    'end_ms': {_milliseconds("endTimeMs")}, 'exit_type': t.deathInfo.exitType, 'exit_detail': t.deathInfo.exitDetail
}}) AS transitions
FROM (SELECT workerLifecycleEvent AS x FROM cluster_events) WHERE x IS NOT NULL
"""

_ACTORS = f"""
SELECT hex_id(x.actorId) AS actor_id, true AS has_definition, x.isDetached AS is_detached, hex_id(x.jobId) AS job_id,
    x.name AS name, x.rayNamespace AS ray_namespace, x.className AS class_name,
    x.serializedRuntimeEnv AS serialized_runtime_env, x.requiredResources::VARCHAR AS required_resources,
    x.labelSelector::VARCHAR AS label_selector, real_id(x.placementGroupId) AS placement_group_id,
    real_id(x.parentId) AS parent_id, x.callSite AS call_site
FROM (SELECT actorDefinitionEvent AS x FROM cluster_events) WHERE x IS NOT NULL
UNION ALL BY NAME
SELECT hex_id(x.actorId) AS actor_id, hex_id(x.actorId)[-8:] AS job_id, list_transform(x.stateTransitions, lambda t: {{
    'ns': epoch_ns(t.timestamp), 'state_order': {_ACTOR_STATE_ORDER}, 'state': t.state, 'node_id': real_id(t.nodeId),
    'worker_id': real_id(t.workerId), 'pid': t.pid, 'port': t.port, 'repr_name': t.reprName,
    'restart_reason': t.restartReason, 'death_cause': t.deathCause::VARCHAR
}}) AS transitions
FROM (SELECT actorLifecycleEvent AS x FROM cluster_events) WHERE x IS NOT NULL
"""

CREATING_TASKS = """
SELECT task_id[17:] AS actor_id, fallback_strategy,
    CASE WHEN worker_pid IS NOT NULL THEN {{'attempt': attempt_number, 'pid': worker_pid}} END AS created
FROM ({tasks})
WHERE task_id >= 'ffffffffffffffff' AND task_id[17:40] <> 'ffffffffffffffffffffffff'
    AND (fallback_strategy IS NOT NULL OR worker_pid IS NOT NULL)
"""
"""Over partial rows of tasks: what actors have in common with the tasks that make them, and no event of their own.
A driver's id is as high, but names no actor."""
CREATING_COLUMNS = ("task_id", "attempt_number", "fallback_strategy", "worker_pid")

_JOBS = """
SELECT hex_id(x.jobId) AS job_id, true AS has_definition, x.driverPid AS driver_pid,
    real_id(x.driverNodeId) AS driver_node_id, x.entrypoint AS entrypoint,
    x.config.serializedRuntimeEnv AS serialized_runtime_env, x.config.metadata::VARCHAR AS metadata
FROM (SELECT driverJobDefinitionEvent AS x FROM cluster_events) WHERE x IS NOT NULL
UNION ALL BY NAME
SELECT hex_id(x.jobId) AS job_id,
    epoch_ns(list_min(list_filter(x.stateTransitions, lambda t: t.state = 'CREATED').list_transform(
        lambda t: t.timestamp))) AS created_ns,
    epoch_ns(list_min(list_filter(x.stateTransitions, lambda t: t.state = 'FINISHED').list_transform(
        lambda t: t.timestamp))) AS finished_ns
FROM (SELECT driverJobLifecycleEvent AS x FROM cluster_events) WHERE x IS NOT NULL
"""

PARTIAL_ROWS = {NODES: _NODES, WORKERS: _WORKERS, ACTORS: _ACTORS, JOBS: _JOBS}
"""By table, over `cluster_events`: rows with the payload columns of `events`. What a row does not know is NULL."""


def no_cluster_events() -> str:
    """A query in place of `cluster_events` where there are none."""
    return f"SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in CLUSTER_PAYLOADS.items())} WHERE false"
