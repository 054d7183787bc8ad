"""The statements behind a report. Each answers a bounded number of rows, whatever the size of the session.

None reads `tasks`, which would have to be fetched as a whole.
"""

from __future__ import annotations

from raykeeper.history.report.fingerprint import (
    ARGUMENT_MARK,
    COLLAPSED,
    CUT,
    HEAD_CHARS,
    NESTED_MARK,
    TAIL_CHARS,
    Wrapping,
)

IN_SCOPE = "type <> 'DRIVER_TASK' AND has_definition AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)"
"""Tasks that Ray lists, of one job or of all."""

COUNTED_ATTEMPTS = f"""
    SELECT coalesce(sum(number), 0)::BIGINT AS attempts,
           coalesce(sum(number) FILTER (WHERE state = 'FAILED'), 0)::BIGINT AS failures,
           (SELECT count(*) FROM unfinished_tasks WHERE closed_by = 'cluster' AND {IN_SCOPE}) AS cut_off
    FROM task_summary WHERE type <> 'DRIVER_TASK' AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
"""  # noqa: S608 - made of constants

DIGEST = f"""regexp_replace(
    CASE WHEN length(message) > {HEAD_CHARS + TAIL_CHARS + len(CUT)}
    THEN left(message, {HEAD_CHARS}) || '{CUT}' || right(message, {TAIL_CHARS}) ELSE message END,
    '{COLLAPSED}', '0', 'g')"""
"""`fingerprint.digest` as the database does it."""

WRAPPING = f"""CASE WHEN contains(message, '{ARGUMENT_MARK}') THEN '{Wrapping.ARGUMENT}'
    WHEN contains(message, '{NESTED_MARK}') THEN '{Wrapping.NESTED}' ELSE '{Wrapping.OWN}' END"""

NEVER_RAN = "start_ns IS NULL AND worker_id IS NULL AND pending_node_assignment_ns IS NOT NULL"
"""Waited for a node until it ended; what waited for its arguments never asked for one."""

GROUPED_FAILURES = f"""
    WITH failed AS (
        SELECT task_id, attempt_number, job_id, func_or_class_name, error_type, closed_by, end_ns, node_id, worker_id,
               {NEVER_RAN} AS never_ran, coalesce(error_message, '') AS message
        FROM unfinished_tasks WHERE state = 'FAILED' AND {IN_SCOPE}
    ),
    tried_again AS (SELECT DISTINCT task_id FROM task_list WHERE state = 'FINISHED' AND attempt_number > 0),
    lost_nodes AS (SELECT node_id, end_ns FROM nodes WHERE end_ns IS NOT NULL),
    grouped AS (
        SELECT error_type, failed.closed_by, never_ran, func_or_class_name AS function, exit_type AS worker_exit,
               lost_nodes.node_id IS NOT NULL AS has_lost_node, {WRAPPING} AS wrapping, {DIGEST} AS digest,
               count(*) AS failures, count(tried_again.task_id) AS recovered,
               min(failed.end_ns) AS first_ns, max(failed.end_ns) AS last_ns,
               arg_min({{'task_id': failed.task_id, 'attempt_number': attempt_number}},
                       {{'ns': failed.end_ns, 'task_id': failed.task_id}}) AS first,
               (list(DISTINCT failed.node_id ORDER BY failed.node_id) FILTER (failed.node_id IS NOT NULL))[:$node_limit]
                   AS nodes,
               list(DISTINCT failed.job_id) AS jobs
        FROM failed
        LEFT JOIN tried_again ON tried_again.task_id = failed.task_id
        LEFT JOIN workers ON workers.worker_id = failed.worker_id
        LEFT JOIN lost_nodes ON lost_nodes.node_id = failed.node_id
            AND lost_nodes.end_ns BETWEEN failed.end_ns - $slack_ns AND failed.end_ns + $slack_ns
        GROUP BY ALL
    )
    SELECT * FROM grouped
    QUALIFY row_number() OVER (ORDER BY failures DESC, first_ns, digest) <= $frequent_limit
        OR row_number() OVER (ORDER BY first_ns, digest) <= $early_limit
"""  # noqa: S608 - made of constants
"""Failed attempts by what was said of them and by what happened around them: the most frequent, and the earliest,
among which the first cause is."""

FIRST_FAILURES = """
    SELECT t.task_id, t.attempt_number, t.job_id, t.name, t.type, t.func_or_class_name AS function, t.end_ns,
           t.node_id, t.worker_id, t.actor_id, t.required_resources, t.closed_by,
           CASE WHEN length(t.error_message) <= $message_limit THEN t.error_message
                ELSE left(t.error_message, $message_limit // 4) || $cut
                     || right(t.error_message, $message_limit - $message_limit // 4) END AS message,
           w.exit_type, w.exit_detail, w.end_ns AS worker_end_ns, w.pid,
           n.end_ns AS node_end_ns, n.node_ip, n.death_reason, n.death_message,
           a.class_name, a.death_cause, a.end_ns AS actor_end_ns
    FROM unfinished_tasks AS t
    LEFT JOIN workers AS w ON w.worker_id = t.worker_id
    LEFT JOIN nodes AS n ON n.node_id = t.node_id
    LEFT JOIN actors AS a ON a.actor_id = t.actor_id
    WHERE t.state = 'FAILED' AND t.task_id IN (SELECT unnest($task_ids::VARCHAR[]))
"""
"""The first attempt of each group, with what is known of its worker, node and actor."""

GIVEN_RESOURCES = "SELECT DISTINCT required_resources FROM task_list WHERE start_ns IS NOT NULL LIMIT 1000"
"""What attempts that ran had asked for; few kinds, whatever the number of tasks."""

NODE_RESOURCES = "SELECT DISTINCT resources_total FROM nodes WHERE resources_total IS NOT NULL LIMIT 1000"

WAITING = f"""
    SELECT job_id, func_or_class_name AS function, required_resources, count(*) AS attempts,
           min(pending_node_assignment_ns) AS since_ns
    FROM unfinished_tasks WHERE closed_by = 'cluster' AND {NEVER_RAN} AND {IN_SCOPE}
    GROUP BY ALL ORDER BY since_ns, function LIMIT 100
"""  # noqa: S608 - made of constants
"""Attempts that waited for a node when the cluster ended; the state that they were in is all that Ray said of them."""
