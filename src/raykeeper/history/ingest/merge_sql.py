# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""The SQL of tables: partial rows of nodes, workers, actors and jobs; one row of many by each column's rule; what
follows from it.
"""

from __future__ import annotations

from raykeeper.history.ingest.events_sql import CLUSTER_PAYLOADS
from raykeeper.history.ingest.tables import (
    ACTORS,
    JOBS,
    NODES,
    SPANS_LIMIT,
    TASKS,
    WORKERS,
    Column,
    Rule,
    Table,
    state_column,
)
from raykeeper.rayevents.states import ACTOR_STATES, TASK_STATES

_NO_TIME = 2**63  # Ray prints 2^64 - 1 for a time that was never set


def _milliseconds(field: str) -> str:
    return f"CASE WHEN t.{field} >= {_NO_TIME} THEN -1 ELSE t.{field}::BIGINT END"


_ACTOR_STATE_ORDER = f"list_position({list(ACTOR_STATES)}, t.state)::INTEGER"

_PARTIAL_NODES = """
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

_PARTIAL_WORKERS = f"""
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

_PARTIAL_ACTORS = f"""
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

_PARTIAL_JOBS = """
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

PARTIAL_ROWS = {NODES: _PARTIAL_NODES, WORKERS: _PARTIAL_WORKERS, ACTORS: _PARTIAL_ACTORS, JOBS: _PARTIAL_JOBS}
"""By table, over `cluster_events`: rows with the payload columns of `events`. What a row does not know is NULL."""


def no_cluster_events() -> str:
    """A query in place of `cluster_events` where there are none."""
    return f"SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in CLUSTER_PAYLOADS.items())} WHERE false"


_AGGREGATES = {Rule.MAX: "max({0})", Rule.MIN: "min({0})", Rule.ANY: "bool_or({0})", Rule.SUM: "sum({0})::BIGINT"}


def merged_rows(table: Table, source: str) -> str:
    """A query: the rows of `source` merged into one row a key, without what is derived.

    `source` is a FROM item with the table's columns; further columns of it are not looked at.
    """
    keys = [_quoted(name) for name in table.key]
    values = [_merged(column) for column in table.columns if column.rule not in (Rule.KEY, Rule.DERIVED)]
    return f"SELECT {', '.join([*keys, *values])} FROM {source} GROUP BY {', '.join(keys)}"


def _merged(column: Column) -> str:
    name = _quoted(column.name)
    if column.rule is Rule.UNION:
        # Sorted by all fields: the order in which elements came is forgotten.
        union = f"list_sort(list_distinct(flatten(list({name}) FILTER ({name} IS NOT NULL))))"
        return f"{union}[:{SPANS_LIMIT}] AS {name}" if column in TASKS.columns else f"{union} AS {name}"
    return f"{_AGGREGATES[column.rule].format(name)} AS {name}"


def _quoted(name: str) -> str:
    return f'"{name}"'


_LAST_STATE = "CASE {} END".format(
    " ".join(f"WHEN {state_column(state)} IS NOT NULL THEN '{state}'" for state in reversed(TASK_STATES))
)

DERIVED_TASKS = """
SELECT tasks.* EXCLUDE (closed_by, closed_ns, closed_state, closed_error_type, closed_message, last_state),
    coalesce(closed_state, last_state) AS state,
    CASE
        WHEN actor_repr_name <> '' AND task_name = split_part(function_class, '.', -1) || '.' || function_name
            THEN actor_repr_name || '.' || function_name
        ELSE task_name
    END AS name,
    CASE WHEN type <> 'NORMAL_TASK' AND function_class <> '' THEN split_part(function_class, '.', -1) || '.' ELSE '' END
        || coalesce(split_part(function_name, '.', -1), '') AS func_or_class_name,
    pending_args_avail_ns AS creation_ns,
    running_ns AS start_ns,
    coalesce(failed_ns, finished_ns, CASE WHEN closed_state IS NOT NULL THEN closed_ns END) AS end_ns,
    coalesce(closed_error_type, CASE WHEN last_state = 'FAILED' THEN reported_error.error_type END) AS error_type,
    coalesce(closed_message, CASE WHEN last_state = 'FAILED' THEN reported_error.error_message END) AS error_message,
    closed_by,
    closed_ns
FROM closed_tasks AS tasks
"""
"""Over `closed_tasks`: merged tasks with `last_state` and what closed them."""


def with_last_state(merged: str) -> str:
    """A query: merged tasks with the last of Ray's states that each reached."""
    return f"SELECT *, {_LAST_STATE} AS last_state FROM ({merged})"


_DERIVED_ACTORS = """
SELECT *,
    transitions[-1].state AS state,
    alive.node_id AS node_id,
    alive.worker_id AS worker_id,
    CASE WHEN alive IS NULL THEN 0 ELSE coalesce(nullif(alive.pid, 0), created.pid, 0) END AS pid,
    coalesce(alive.port, 0) AS port,
    coalesce(alive.repr_name, '') AS repr_name,
    len(list_filter(transitions, lambda t: t.state = 'RESTARTING')) AS num_restarts,
    list_filter(transitions, lambda t: t.state = 'ALIVE')[1].ns AS start_ns,
    list_filter(transitions, lambda t: t.state = 'DEAD' AND t.ns >= coalesce(last_living_ns, 0))[1].ns AS end_ns,
    CASE WHEN state = 'DEAD' THEN transitions[-1].death_cause END AS death_cause
FROM (
    SELECT *,
        list_filter(transitions, lambda t: t.state = 'ALIVE')[-1] AS alive,
        list_filter(transitions, lambda t: t.state <> 'DEAD')[-1].ns AS last_living_ns
    FROM merged
)
"""

_DERIVED_JOBS = """
SELECT *, metadata::JSON ->> '$.job_submission_id' AS submission_id FROM merged
"""

_DERIVED_NODES = """
SELECT merged.*,
    transitions[-1].state AS state,
    list_filter(transitions, lambda t: t.resources NOT IN ('', '{}'))[-1].resources AS resources_total,
    coalesce(resources_total LIKE '%"node:__internal_head__"%', false) AS is_head_node,
    CASE WHEN state = 'DEAD' THEN transitions[-1].ns END AS end_ns,
    CASE WHEN state = 'DEAD' THEN transitions[-1].death_reason END AS death_reason,
    CASE WHEN state = 'DEAD' THEN transitions[-1].death_message END AS death_message
FROM merged
"""

_DERIVED_WORKERS = """
SELECT merged.*,
    coalesce(transitions[-1].state <> 'DEAD', true) AS is_alive,
    list_max(list_transform(transitions, lambda t: t.launch_ms)) AS launch_ms,
    list_max(list_transform(transitions, lambda t: t.launched_ms)) AS launched_ms,
    list_max(list_transform(transitions, lambda t: t.start_ms)) AS start_ms,
    list_max(list_transform(transitions, lambda t: t.end_ms)) AS end_ms,
    CASE WHEN NOT is_alive THEN transitions[-1].exit_type END AS exit_type,
    CASE WHEN NOT is_alive THEN transitions[-1].exit_detail END AS exit_detail,
    CASE WHEN NOT is_alive THEN coalesce(nullif(end_ms, 0) * 1000000, transitions[-1].ns) END AS end_ns
FROM merged
"""

DERIVED_ROWS = {ACTORS: _DERIVED_ACTORS, JOBS: _DERIVED_JOBS, NODES: _DERIVED_NODES, WORKERS: _DERIVED_WORKERS}
"""By table, over `merged`: the merged rows with all that follows from each, except what closed it."""


def whole_rows(table: Table, rows: str) -> str:
    """A query: exactly the table's columns in their types, in the table's order."""
    columns = ", ".join(f"{_quoted(column.name)}::{column.type} AS {_quoted(column.name)}" for column in table.columns)
    return f"SELECT {columns} FROM ({rows}) ORDER BY {', '.join(map(_quoted, table.order))}"
