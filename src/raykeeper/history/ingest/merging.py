# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""The SQL that makes one row of many: merging by each column's rule, then what follows from the merged row."""

from __future__ import annotations

from raykeeper.history.tables import (
    ACTORS,
    JOBS,
    NODES,
    SPANS_LIMIT,
    TASK_STATES,
    TASKS,
    WORKERS,
    Column,
    Rule,
    Table,
    state_column,
)

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


_ACTORS = """
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

_JOBS = """
SELECT *, metadata::JSON ->> '$.job_submission_id' AS submission_id FROM merged
"""

_NODES = """
SELECT merged.*,
    transitions[-1].state AS state,
    list_filter(transitions, lambda t: t.resources NOT IN ('', '{}'))[-1].resources AS resources_total,
    coalesce(resources_total LIKE '%"node:__internal_head__"%', false) AS is_head_node,
    CASE WHEN state = 'DEAD' THEN transitions[-1].ns END AS end_ns,
    CASE WHEN state = 'DEAD' THEN transitions[-1].death_reason END AS death_reason,
    CASE WHEN state = 'DEAD' THEN transitions[-1].death_message END AS death_message
FROM merged
"""

_WORKERS = """
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

DERIVED_ROWS = {ACTORS: _ACTORS, JOBS: _JOBS, NODES: _NODES, WORKERS: _WORKERS}
"""By table, over `merged`: the merged rows with all that follows from each, except what closed it."""


def whole_rows(table: Table, rows: str) -> str:
    """A query: exactly the table's columns in their types, in the table's order."""
    columns = ", ".join(f"{_quoted(column.name)}::{column.type} AS {_quoted(column.name)}" for column in table.columns)
    return f"SELECT {columns} FROM ({rows}) ORDER BY {', '.join(map(_quoted, table.order))}"
