# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""Ray's events as DuckDB reads them, and the partial row that each becomes. SQL as text; nothing runs here.

A line is parsed straight into the types below; a line that does not fit makes the query fail, so that it is never half
used in silence. What Ray prints as text because it is a 64-bit number is read as the number it is.
"""

from __future__ import annotations

from raykeeper.history.ingest.tables import state_column
from raykeeper.rayevents.states import TASK_STATES

TASK_EVENT_TYPES = (
    "TASK_DEFINITION_EVENT",
    "ACTOR_TASK_DEFINITION_EVENT",
    "TASK_LIFECYCLE_EVENT",
    "TASK_PROFILE_EVENT",
)
_TRANSITION = "state VARCHAR, timestamp TIMESTAMP_NS"
_FUNCTION = (
    "STRUCT(pythonFunctionDescriptor STRUCT(moduleName VARCHAR, className VARCHAR, functionName VARCHAR), "
    "javaFunctionDescriptor STRUCT(className VARCHAR, functionName VARCHAR), "
    "cppFunctionDescriptor STRUCT(className VARCHAR, functionName VARCHAR))"
)
_TASK_DEFINITION = (
    "taskId VARCHAR, taskAttempt INTEGER, jobId VARCHAR, parentTaskId VARCHAR, placementGroupId VARCHAR, "
    "language VARCHAR, requiredResources JSON, labelSelector JSON, fallbackStrategy JSON, "
    "serializedRuntimeEnv VARCHAR, callSite VARCHAR"
)
_LOG_INFO = (
    "STRUCT(stdoutFile VARCHAR, stderrFile VARCHAR, stdoutStart BIGINT, stdoutEnd BIGINT, stderrStart BIGINT, "
    "stderrEnd BIGINT)"
)

TASK_PAYLOADS = {
    "taskDefinitionEvent": f"STRUCT({_TASK_DEFINITION}, taskType VARCHAR, taskName VARCHAR, taskFunc {_FUNCTION})",
    "actorTaskDefinitionEvent": (
        f"STRUCT({_TASK_DEFINITION}, actorId VARCHAR, actorTaskName VARCHAR, actorFunc {_FUNCTION})"
    ),
    "taskLifecycleEvent": (
        "STRUCT(taskId VARCHAR, taskAttempt INTEGER, jobId VARCHAR, nodeId VARCHAR, workerId VARCHAR, "
        f"workerPid INTEGER, stateTransitions STRUCT({_TRANSITION})[], taskLogInfo {_LOG_INFO}, rayErrorInfo JSON, "
        "actorReprName VARCHAR, isDebuggerPaused BOOLEAN)"
    ),
    "taskProfileEvents": (
        "STRUCT(taskId VARCHAR, attemptNumber INTEGER, jobId VARCHAR, profileEvents STRUCT(componentType VARCHAR, "
        "componentId VARCHAR, nodeIpAddress VARCHAR, events STRUCT(endTime BIGINT, startTime BIGINT, "
        "eventName VARCHAR, extraData VARCHAR)[]))"
    ),
}
CLUSTER_PAYLOADS = {
    "nodeDefinitionEvent": (
        "STRUCT(nodeId VARCHAR, nodeIpAddress VARCHAR, hostname VARCHAR, nodeName VARCHAR, labels JSON, "
        "startTimestamp TIMESTAMP_NS, instanceId VARCHAR, instanceTypeName VARCHAR)"
    ),
    "nodeLifecycleEvent": (
        f"STRUCT(nodeId VARCHAR, stateTransitions STRUCT({_TRANSITION}, aliveSubState VARCHAR, resources JSON, "
        "deathInfo STRUCT(reason VARCHAR, reasonMessage VARCHAR))[])"
    ),
    "workerDefinitionEvent": "STRUCT(workerId VARCHAR, nodeId VARCHAR, workerType VARCHAR, pid BIGINT)",
    "workerLifecycleEvent": (
        f"STRUCT(workerId VARCHAR, jobId VARCHAR, stateTransitions STRUCT({_TRANSITION}, workerLaunchTimeMs UBIGINT, "
        "workerLaunchedTimeMs UBIGINT, startTimeMs UBIGINT, endTimeMs UBIGINT, "
        "deathInfo STRUCT(exitType VARCHAR, exitDetail VARCHAR))[])"
    ),
    "actorDefinitionEvent": (
        "STRUCT(actorId VARCHAR, jobId VARCHAR, isDetached BOOLEAN, name VARCHAR, rayNamespace VARCHAR, "
        "className VARCHAR, serializedRuntimeEnv VARCHAR, requiredResources JSON, labelSelector JSON, "
        "placementGroupId VARCHAR, parentId VARCHAR, callSite VARCHAR)"
    ),
    "actorLifecycleEvent": (
        f"STRUCT(actorId VARCHAR, stateTransitions STRUCT({_TRANSITION}, nodeId VARCHAR, workerId VARCHAR, pid BIGINT, "
        "port BIGINT, reprName VARCHAR, restartReason VARCHAR, deathCause JSON)[])"
    ),
    "driverJobDefinitionEvent": (
        "STRUCT(jobId VARCHAR, driverPid BIGINT, driverNodeId VARCHAR, entrypoint VARCHAR, "
        "config STRUCT(serializedRuntimeEnv VARCHAR, metadata JSON))"
    ),
    "driverJobLifecycleEvent": f"STRUCT(jobId VARCHAR, stateTransitions STRUCT({_TRANSITION})[])",
}
CLUSTER_EVENT_TYPES = tuple(
    f"{entity}_{kind}_EVENT"
    for entity in ("NODE", "WORKER", "ACTOR", "DRIVER_JOB")
    for kind in ("DEFINITION", "LIFECYCLE")
)

ENVELOPE = {"eventType": "VARCHAR", "event_type": "VARCHAR", "timestamp": "VARCHAR"}
"""`event_type` alone tells of an event in the names of Ray's protobuf."""

CLUSTER_PARTITION = -1
"""Of the events that are about no task."""

MACROS = """
CREATE OR REPLACE MACRO hex_id(text) AS lower(hex(from_base64(text)));
CREATE OR REPLACE MACRO real_id(text) AS CASE WHEN trim(hex_id(text), 'f') = '' THEN NULL ELSE hex_id(text) END;
"""
"""`hex_id`: an id as Ray's API spells it. `real_id`: the same, but NULL where it is nil or not set."""


def read_events(file_parameter: str) -> str:
    """A FROM item: each line of the file as one row of payloads."""
    columns = {**ENVELOPE, **TASK_PAYLOADS, **CLUSTER_PAYLOADS}
    spelled = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    return f"read_json({file_parameter}, format = 'newline_delimited', columns = {{{spelled}}})"


def event_rows(file_parameter: str, partition_bits: int) -> str:
    """A query: every event as a partial row of `tasks`, and the range of task ids it belongs to.

    Events about no task are in `CLUSTER_PARTITION`, with what they say of the cluster as JSON. One reading for both:
    the lines are most of the work.
    """
    cluster = ", ".join(f"{payload}: {payload}" for payload in CLUSTER_PAYLOADS)
    has_payload = " OR ".join(f"{payload} IS NOT NULL" for payload in CLUSTER_PAYLOADS)
    return f"""
WITH payloads AS (
    SELECT *, taskDefinitionEvent AS d, actorTaskDefinitionEvent AS a, taskLifecycleEvent AS l, taskProfileEvents AS p
    FROM {read_events(file_parameter)}
),
events AS (
    SELECT *,
        coalesce(hex_id(coalesce(d.taskId, a.taskId, l.taskId, p.taskId)), '') AS task_id,
        coalesce(d.taskFunc, a.actorFunc) AS f,
        list_sort(l.stateTransitions) AS transitions,
        list_transform(transitions, lambda t: t.state) AS states
    FROM payloads
)
SELECT
    CASE task_id WHEN '' THEN {CLUSTER_PARTITION} ELSE ('0x' || left(task_id, 2))::INTEGER >> {8 - partition_bits} END
        AS partition,
    {_EVENT_TYPE} AS event_type,
    CASE WHEN {has_payload} THEN to_json({{{cluster}}}) END AS cluster,
    {_TASK_COLUMNS}
FROM events
"""


def cluster_rows(events: str) -> str:
    """A query: the events about no task, out of their partition's partial rows, each payload in its type again."""
    payloads = ", ".join(f"{name} {kind}" for name, kind in CLUSTER_PAYLOADS.items())
    return f"""
SELECT
    event_type,
    cluster IS NULL AND (event_type IS NULL OR event_type IN {TASK_EVENT_TYPES + CLUSTER_EVENT_TYPES}) AS is_odd,
    {", ".join(f"payloads.{name} AS {name}" for name in CLUSTER_PAYLOADS)}
FROM (SELECT event_type, cluster, cluster::STRUCT({payloads}) AS payloads FROM {events})
"""


_EVENT_TYPE = """coalesce(
        eventType, CASE WHEN events.event_type IS NOT NULL THEN error('in the names of the protobuf') END
    )"""
"""The query fails on another spelling, and the batch goes through the slow way, which rewrites it (`cleaning`)."""


def _definition(field: str) -> str:
    return f"coalesce(d.{field}, a.{field})"


def _function(field: str) -> str:
    kinds = ("pythonFunctionDescriptor", "javaFunctionDescriptor", "cppFunctionDescriptor")
    return f"coalesce({', '.join(f'f.{kind}.{field}' for kind in kinds)})"


_STATE_TIMES = ",\n    ".join(
    f"epoch_ns(transitions[list_position(states, '{state}')].timestamp) AS {state_column(state)}"
    for state in TASK_STATES
)
"""`transitions` are sorted by state and time, so the first of a state is its earliest."""

_TASK_COLUMNS = f"""
    task_id,
    coalesce(d.taskAttempt, a.taskAttempt, l.taskAttempt, p.attemptNumber, 0) AS attempt_number,
    hex_id(coalesce(d.jobId, a.jobId, l.jobId, p.jobId)) AS job_id,
    d IS NOT NULL OR a IS NOT NULL AS has_definition,
    CASE WHEN a IS NOT NULL THEN 'ACTOR_TASK' ELSE d.taskType END AS type,
    coalesce(d.taskName, a.actorTaskName) AS task_name,
    {_definition("language")} AS language,
    f.pythonFunctionDescriptor.moduleName AS function_module,
    {_function("className")} AS function_class,
    {_function("functionName")} AS function_name,
    CASE WHEN d.taskType = 'ACTOR_CREATION_TASK' THEN task_id[17:] ELSE real_id(a.actorId) END AS actor_id,
    hex_id({_definition("parentTaskId")}) AS parent_task_id,
    real_id({_definition("placementGroupId")}) AS placement_group_id,
    {_definition("requiredResources")}::VARCHAR AS required_resources,
    {_definition("labelSelector")}::VARCHAR AS label_selector,
    {_definition("fallbackStrategy")}::VARCHAR AS fallback_strategy,
    {_definition("serializedRuntimeEnv")} AS serialized_runtime_env,
    {_definition("callSite")} AS call_site,
    {_STATE_TIMES},
    real_id(l.nodeId) AS node_id,
    real_id(l.workerId) AS worker_id,
    nullif(l.workerPid, 0) AS worker_pid,
    l.actorReprName AS actor_repr_name,
    l.taskLogInfo.stdoutFile AS stdout_file,
    l.taskLogInfo.stderrFile AS stderr_file,
    l.taskLogInfo.stdoutStart AS stdout_start,
    l.taskLogInfo.stdoutEnd AS stdout_end,
    l.taskLogInfo.stderrStart AS stderr_start,
    l.taskLogInfo.stderrEnd AS stderr_end,
    l.isDebuggerPaused AS is_debugger_paused,
    p.profileEvents.componentType AS component_type,
    real_id(p.profileEvents.componentId) AS component_id,
    p.profileEvents.nodeIpAddress AS component_ip,
    list_transform(p.profileEvents.events, lambda s: {{
        'end_ns': s.endTime, 'start_ns': s.startTime, 'event_name': s.eventName, 'extra_data': s.extraData
    }}) AS spans,
    CASE WHEN l.rayErrorInfo IS NOT NULL THEN {{
        'ns': coalesce(failed_ns, epoch_ns("timestamp"::TIMESTAMP_NS)),
        'error_type': l.rayErrorInfo ->> 'errorType',
        'error_message': l.rayErrorInfo ->> 'errorMessage',
        'details': l.rayErrorInfo::VARCHAR
    }} END AS reported_error"""
