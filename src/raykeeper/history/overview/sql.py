# ruff: noqa: S608 - statements are made of constants of this file; values are bound
"""The statements behind the pages of sessions and jobs. Each answers few rows, whatever the size of the session."""

from __future__ import annotations

from raykeeper.history.entities.tasks import IN_SCOPE

FUNCTION = "coalesce(nullif(name, ''), func_or_class_name)"
"""What Ray's own summary goes by."""

STRETCH = f"""
    SELECT count(*) AS attempts, count(*) FILTER (WHERE state = 'FAILED') AS failed,
           count(*) FILTER (WHERE state = 'FINISHED') AS finished,
           count(*) FILTER (WHERE state NOT IN ('FAILED', 'FINISHED') AND start_ns IS NULL) AS pending,
           min(creation_ns) AS first_ns, max(greatest(creation_ns, start_ns, end_ns)) AS last_ns
    FROM task_list WHERE {IN_SCOPE}
"""

_EDGES = {
    "created": ("creation_ns", "creation_ns IS NOT NULL"),
    "left_queue": ("coalesce(start_ns, end_ns)", "creation_ns IS NOT NULL AND coalesce(start_ns, end_ns) IS NOT NULL"),
    "started": ("start_ns", "start_ns IS NOT NULL"),
    "stopped": ("end_ns", "start_ns IS NOT NULL AND end_ns IS NOT NULL"),
    "finished": ("end_ns", "state = 'FINISHED' AND end_ns IS NOT NULL"),
    "failed": ("end_ns", "state = 'FAILED' AND end_ns IS NOT NULL"),
}
"""By name: when an attempt comes to it, and whether it does at all."""


def _edges(names: tuple[str, ...], columns: str, condition: str) -> str:
    """Edges by part of the time, one group for each name: each reads the few columns it needs."""
    return " UNION ALL ".join(
        f"""
        SELECT '{name}' AS edge, {columns}
               least($last_bin, greatest(0, (ns - $begin_ns) // $width_ns))::INTEGER AS bin, count(*) AS number,
               sum($begin_ns + (bin + 1) * $width_ns::BIGINT
                   - least($end_ns, greatest($begin_ns, ns)))::DOUBLE AS tail_ns
        FROM (SELECT {_EDGES[name][0]} AS ns, * FROM task_list WHERE {IN_SCOPE} AND {_EDGES[name][1]} {condition})
        GROUP BY ALL
        """
        for name in names
    )


TASK_EDGES = _edges(tuple(_EDGES), "", "")

FUNCTION_EDGES = _edges(
    ("started", "stopped", "failed"),
    f"{FUNCTION} AS function,",
    f"AND {FUNCTION} IN (SELECT unnest($functions::VARCHAR[]))",
)

FUNCTIONS = f"""
    SELECT {FUNCTION} AS function, any_value(type) AS type, count(*) AS attempts,
           count(*) FILTER (WHERE state = 'FAILED') AS failed,
           quantile_cont((end_ns - start_ns) / 1e9, [0.5, 0.95]) AS quantiles,
           coalesce(sum(end_ns - start_ns) / 1e9, 0) AS total_seconds,
           count(*) OVER () AS functions
    FROM task_list WHERE {IN_SCOPE} GROUP BY function
    ORDER BY total_seconds DESC, attempts DESC, function LIMIT $row_limit
"""
"""By the time they took together; attempts that never began or never ended have no duration."""

FEW_ATTEMPTS = f"""
    SELECT task_id, attempt_number, {FUNCTION} AS function, state, error_type, worker_id, creation_ns, start_ns, end_ns
    FROM task_list WHERE {IN_SCOPE} ORDER BY coalesce(start_ns, creation_ns), task_id, attempt_number LIMIT $row_limit
"""

TASK_RESOURCES = f"""
    SELECT required_resources, sum(greatest(0, coalesce(end_ns, $until_ns) - start_ns))::DOUBLE AS held_ns
    FROM task_list WHERE type = 'NORMAL_TASK' AND start_ns IS NOT NULL AND {IN_SCOPE}
    GROUP BY required_resources ORDER BY held_ns DESC LIMIT $row_limit
"""
"""Methods of actors hold what their actor holds, so they count there."""

ACTOR_RESOURCES = """
    SELECT required_resources, sum(greatest(0, coalesce(end_ns, closed_ns, $until_ns) - start_ns))::DOUBLE AS held_ns
    FROM actors WHERE start_ns IS NOT NULL AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
    GROUP BY required_resources ORDER BY held_ns DESC LIMIT $row_limit
"""

NODES = """
    SELECT node_id, node_ip, node_name, hostname, is_head_node, state, resources_total,
           coalesce(started_ns, transitions[1].ns) AS started_ns,
           coalesce(end_ns, closed_ns) AS end_ns, death_reason, death_message, count(*) OVER () AS nodes
    FROM nodes ORDER BY is_head_node DESC NULLS LAST, started_ns NULLS LAST, node_id LIMIT $row_limit
"""

JOB_NODES = f"""
    SELECT node_id, count(*) AS attempts, count(*) FILTER (WHERE state = 'FAILED') AS failed
    FROM task_list WHERE {IN_SCOPE} AND node_id IS NOT NULL GROUP BY node_id ORDER BY attempts DESC, node_id
    LIMIT $row_limit
"""

JOB_ACTORS = """
    SELECT actor_id, class_name, name, repr_name, state, num_restarts, start_ns,
           coalesce(end_ns, closed_ns) AS end_ns, death_cause, transitions, count(*) OVER () AS actors
    FROM actors WHERE has_definition AND job_id = $job_id
    ORDER BY num_restarts DESC NULLS LAST, start_ns NULLS LAST, actor_id LIMIT $row_limit
"""
