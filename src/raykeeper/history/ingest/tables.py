"""The tables of a session: every column with its type and the rule by which rows of the same key become one.

A partial row, made from one event, has the columns of a whole row; what the event does not say is NULL. Merging by
these rules is commutative, associative and idempotent: rows come in any order, any number of times, in any batches.
`DERIVED` columns follow from the others of the merged row and are never merged themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from raykeeper.rayevents.states import TASK_STATES

SPANS_LIMIT = 1000
"""Profile spans kept of one task attempt: as many as Ray's own GCS keeps. A driver has one for each task it submits."""


class Rule(Enum):
    """How the values of one column in rows of the same key become one."""

    KEY = "the same in all of them"
    MAX = "the greatest, so that a value beats an empty text"
    MIN = "the least: the earliest time, or the earliest error"
    ANY = "true if any is"
    UNION = "all elements, each once, in their own order"
    SUM = "their sum: only for rows that are never merged twice"
    DERIVED = "follows from the other columns"


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    """As DuckDB spells it."""
    rule: Rule


@dataclass(frozen=True)
class Table:
    """One table; its files are sorted by `order`."""

    name: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.rule is Rule.KEY)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def of_rule(self, *rules: Rule) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.rule in rules)


def state_column(state: str) -> str:
    """Of the time, in nanoseconds since 1970, at which a task came into this state."""
    return f"{state.lower()}_ns"


def _columns(rule: Rule, **types: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, rule) for name, kind in types.items())


ERROR_TYPE = "STRUCT(ns BIGINT, error_type VARCHAR, error_message VARCHAR, details VARCHAR)"
"""What Ray said of a failed task; `details` is Ray's whole `rayErrorInfo` as JSON."""

SPANS_TYPE = "STRUCT(end_ns BIGINT, start_ns BIGINT, event_name VARCHAR, extra_data VARCHAR)[]"
"""Sorted by their end, as Ray lists them."""

ACTOR_TRANSITIONS_TYPE = (
    "STRUCT(ns BIGINT, state_order INTEGER, state VARCHAR, node_id VARCHAR, worker_id VARCHAR, pid BIGINT, "
    "port BIGINT, repr_name VARCHAR, restart_reason VARCHAR, death_cause VARCHAR)[]"
)
"""In time order, so all incarnations of an actor; `death_cause` is Ray's as JSON."""

NODE_TRANSITIONS_TYPE = (
    "STRUCT(ns BIGINT, state VARCHAR, alive_sub_state VARCHAR, resources VARCHAR, death_reason VARCHAR, "
    "death_message VARCHAR)[]"
)

WORKER_TRANSITIONS_TYPE = (
    "STRUCT(ns BIGINT, state VARCHAR, launch_ms BIGINT, launched_ms BIGINT, start_ms BIGINT, end_ms BIGINT, "
    "exit_type VARCHAR, exit_detail VARCHAR)[]"
)

CLOSED_COLUMNS = _columns(Rule.DERIVED, closed_by="VARCHAR", closed_ns="BIGINT")
"""What ended something that never said so itself: `worker`, `job`, `node` or `cluster`, and when; NULL where it did.

A task closed by its worker or job is FAILED with WORKER_DIED, as Ray's GCS decides. What only the end of the cluster
closed keeps its last state.
"""

TASKS = Table(
    "tasks",
    (
        *_columns(Rule.KEY, task_id="VARCHAR", attempt_number="INTEGER"),
        *_columns(Rule.MAX, job_id="VARCHAR"),
        # from the definition
        *_columns(Rule.ANY, has_definition="BOOLEAN"),
        *_columns(
            Rule.MAX,
            type="VARCHAR",
            task_name="VARCHAR",
            language="VARCHAR",
            function_module="VARCHAR",
            function_class="VARCHAR",
            function_name="VARCHAR",
            actor_id="VARCHAR",
            parent_task_id="VARCHAR",
            placement_group_id="VARCHAR",
            required_resources="VARCHAR",
            label_selector="VARCHAR",
            fallback_strategy="VARCHAR",
            serialized_runtime_env="VARCHAR",
            call_site="VARCHAR",
        ),
        # one time for each state
        *(Column(state_column(state), "BIGINT", Rule.MIN) for state in TASK_STATES),
        # from its owner, who knows where it was sent
        *_columns(Rule.MAX, node_id="VARCHAR", worker_id="VARCHAR"),
        # from the worker that ran it
        *_columns(
            Rule.MAX,
            worker_pid="INTEGER",
            actor_repr_name="VARCHAR",
            stdout_file="VARCHAR",
            stderr_file="VARCHAR",
            stdout_start="BIGINT",
            stdout_end="BIGINT",
            stderr_start="BIGINT",
            stderr_end="BIGINT",
            is_debugger_paused="BOOLEAN",
            component_type="VARCHAR",
            component_id="VARCHAR",
            component_ip="VARCHAR",
        ),
        *_columns(Rule.UNION, spans=SPANS_TYPE),
        *_columns(Rule.MIN, reported_error=ERROR_TYPE),
        *_columns(
            Rule.DERIVED,
            state="VARCHAR",
            name="VARCHAR",
            func_or_class_name="VARCHAR",
            creation_ns="BIGINT",
            start_ns="BIGINT",
            end_ns="BIGINT",
            error_type="VARCHAR",
            error_message="VARCHAR",
        ),
        *CLOSED_COLUMNS,
    ),
    order=("job_id", "task_id", "attempt_number"),
)
"""One row for each attempt of a task.

JSON text: `required_resources`, `label_selector`, `fallback_strategy`. Ids are lower-case hex; a nil id is NULL, except
in `parent_task_id`. `state`, `end_ns`, `error_type` and `error_message` are as Ray's state API would show them, so they
include what closed the task. Files hold disjoint ranges of task ids and are sorted by job within.
"""


def _copied(*names: str) -> tuple[Column, ...]:
    """Columns of tasks, in a table that is made from them."""
    chosen = (column for column in TASKS.columns if column.name in names)
    return tuple(Column(item.name, item.type, item.rule if item.rule is Rule.KEY else Rule.DERIVED) for item in chosen)


_LISTED = (
    "task_id",
    "attempt_number",
    "job_id",
    "has_definition",
    "type",
    "language",
    "actor_id",
    "parent_task_id",
    "placement_group_id",
    "required_resources",
    "node_id",
    "worker_id",
    "worker_pid",
    "state",
    "name",
    "func_or_class_name",
    "creation_ns",
    "start_ns",
    "end_ns",
    "error_type",
    "closed_by",
)

TASK_LIST = Table("task_list", _copied(*_LISTED), order=("task_id", "attempt_number"))
"""Every attempt again, in the columns a list shows, filters or adds up, in the order of task ids over all jobs."""

UNFINISHED_TASKS = Table(
    "unfinished_tasks", _copied(*_LISTED, "pending_node_assignment_ns", "error_message"), TASK_LIST.order
)
"""The rows of `task_list` whose state is not FINISHED: the few that people look for, with what a report and a search
want to know of them. All of `tasks` is a gigabyte for ten million."""

TASK_SUMMARY = Table(
    "task_summary",
    (
        *_columns(Rule.KEY, job_id="VARCHAR", name="VARCHAR", func_or_class_name="VARCHAR"),
        *_columns(Rule.KEY, type="VARCHAR", state="VARCHAR"),
        *_columns(Rule.DERIVED, number="BIGINT"),
    ),
    order=("job_id", "name", "func_or_class_name", "type", "state"),
)
"""How many attempts with a definition there are. Ray's summary shows them by name, or by function where that is empty.

Add `number` up over equal rows: a later file may take back with a negative number what an earlier one counted."""

ACTORS = Table(
    "actors",
    (
        *_columns(Rule.KEY, actor_id="VARCHAR"),
        *_columns(Rule.ANY, has_definition="BOOLEAN", is_detached="BOOLEAN"),
        *_columns(
            Rule.MAX,
            job_id="VARCHAR",
            name="VARCHAR",
            ray_namespace="VARCHAR",
            class_name="VARCHAR",
            serialized_runtime_env="VARCHAR",
            required_resources="VARCHAR",
            label_selector="VARCHAR",
            placement_group_id="VARCHAR",
            parent_id="VARCHAR",
            call_site="VARCHAR",
            fallback_strategy="VARCHAR",
        ),
        *_columns(Rule.MAX, created="STRUCT(attempt INTEGER, pid BIGINT)"),
        *_columns(Rule.UNION, transitions=ACTOR_TRANSITIONS_TYPE),
        *_columns(
            Rule.DERIVED,
            state="VARCHAR",
            node_id="VARCHAR",
            worker_id="VARCHAR",
            pid="BIGINT",
            port="BIGINT",
            repr_name="VARCHAR",
            num_restarts="BIGINT",
            start_ns="BIGINT",
            end_ns="BIGINT",
            death_cause="VARCHAR",
        ),
        *CLOSED_COLUMNS,
    ),
    order=("actor_id",),
)
"""One row for each actor with all its incarnations; pid, node, worker and repr are of the last one that was ALIVE.

Its fallback strategy is that of the task that made it, since no event about an actor has it. So is its pid where all
that Ray says is that it is ALIVE, as 2.52 does (`created`: of the last attempt).
`start_ns` is the first ALIVE and `end_ns` the first DEAD that nothing followed: when its job ends, Ray tells of a dead
actor again."""

JOBS = Table(
    "jobs",
    (
        *_columns(Rule.KEY, job_id="VARCHAR"),
        *_columns(Rule.ANY, has_definition="BOOLEAN"),
        *_columns(
            Rule.MAX,
            driver_pid="BIGINT",
            driver_node_id="VARCHAR",
            entrypoint="VARCHAR",
            serialized_runtime_env="VARCHAR",
            metadata="VARCHAR",
        ),
        *_columns(Rule.MIN, created_ns="BIGINT", finished_ns="BIGINT"),
        *_columns(Rule.DERIVED, submission_id="VARCHAR"),
        *CLOSED_COLUMNS,
    ),
    order=("job_id",),
)
"""One row for each driver. Submission jobs that never had one are in the polled answers alone."""

NODES = Table(
    "nodes",
    (
        *_columns(Rule.KEY, node_id="VARCHAR"),
        *_columns(Rule.ANY, has_definition="BOOLEAN"),
        *_columns(
            Rule.MAX,
            node_ip="VARCHAR",
            hostname="VARCHAR",
            node_name="VARCHAR",
            labels="VARCHAR",
            instance_id="VARCHAR",
            instance_type_name="VARCHAR",
        ),
        *_columns(Rule.MIN, started_ns="BIGINT"),
        *_columns(Rule.UNION, transitions=NODE_TRANSITIONS_TYPE),
        *_columns(
            Rule.DERIVED,
            state="VARCHAR",
            is_head_node="BOOLEAN",
            resources_total="VARCHAR",
            end_ns="BIGINT",
            death_reason="VARCHAR",
            death_message="VARCHAR",
        ),
        *CLOSED_COLUMNS,
    ),
    order=("node_id",),
)

WORKERS = Table(
    "workers",
    (
        *_columns(Rule.KEY, worker_id="VARCHAR"),
        *_columns(Rule.ANY, has_definition="BOOLEAN"),
        *_columns(Rule.MAX, node_id="VARCHAR", job_id="VARCHAR", worker_type="VARCHAR", pid="BIGINT"),
        *_columns(Rule.UNION, transitions=WORKER_TRANSITIONS_TYPE),
        *_columns(
            Rule.DERIVED,
            is_alive="BOOLEAN",
            launch_ms="BIGINT",
            launched_ms="BIGINT",
            start_ms="BIGINT",
            end_ms="BIGINT",
            exit_type="VARCHAR",
            exit_detail="VARCHAR",
            end_ns="BIGINT",
        ),
        *CLOSED_COLUMNS,
    ),
    order=("worker_id",),
)
"""One row for each worker process; drivers are none (make theirs from `jobs`). Milliseconds are -1 where Ray says
2^64 - 1, for none; `end_ns` is when it died."""

COUNTERS = Table(
    "counters",
    (
        *_columns(Rule.KEY, event_type="VARCHAR"),
        *_columns(Rule.SUM, events="BIGINT", odd_events="BIGINT"),
    ),
    order=("event_type",),
)
"""Lines by Ray's event type, repeats included; `odd_events` of them could not be used.
A manifest takes each segment once."""

MERGED = (TASKS, ACTORS, JOBS, NODES, WORKERS, COUNTERS)
"""Made from events."""

PRECOMPUTED = (TASK_LIST, UNFINISHED_TASKS, TASK_SUMMARY)
"""Made from `tasks`."""

ALL_TABLES = {table.name: table for table in (*MERGED, *PRECOMPUTED)}
