"""The statements behind a report. Each answers a bounded number of rows, whatever the size of the session.

None reads `tasks`, which would have to be fetched as a whole.
"""

from __future__ import annotations

from raykeeper.history.entities.tasks import IN_SCOPE, IS_USERS
from raykeeper.history.report.fingerprint import (
    ARGUMENT_MARK,
    COLLAPSED,
    CUT,
    HEAD_CHARS,
    NESTED_MARK,
    TAIL_CHARS,
    Wrapping,
)

COUNTED_ATTEMPTS = f"""
    SELECT coalesce(sum(number), 0)::BIGINT AS attempts,
           coalesce(sum(number) FILTER (WHERE state = 'FAILED'), 0)::BIGINT AS failures,
           (SELECT count(*) FROM unfinished_tasks WHERE closed_by = 'cluster' AND {IN_SCOPE}) AS cut_off
    FROM task_summary WHERE {IS_USERS} AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
"""  # noqa: S608 - made of constants

UNDEFINED_ATTEMPTS = """
    SELECT count(*) AS attempts, count(DISTINCT job_id) AS jobs FROM task_list
    WHERE NOT coalesce(has_definition, false) AND worker_id IS NOT NULL AND start_ns IS NOT NULL
      AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
"""
"""Attempts that workers ran and that nobody defined: their drivers send no events."""

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
               {NEVER_RAN} AS never_ran, coalesce(error_message, '') AS message,
               attempt_number = max(attempt_number) OVER (PARTITION BY task_id) AS is_last
        FROM unfinished_tasks WHERE state = 'FAILED' AND {IN_SCOPE}
    ),
    tried_again AS (SELECT DISTINCT task_id FROM task_list WHERE state = 'FINISHED' AND attempt_number > 0),
    lost_nodes AS (SELECT node_id, end_ns FROM nodes WHERE end_ns IS NOT NULL),
    grouped AS (
        SELECT error_type, failed.closed_by, never_ran, func_or_class_name AS function, exit_type AS worker_exit,
               lost_nodes.node_id IS NOT NULL AS has_lost_node, {WRAPPING} AS wrapping, {DIGEST} AS digest,
               count(*) AS failures, count(tried_again.task_id) AS recovered,
               count(*) FILTER (is_last AND tried_again.task_id IS NULL) AS lost_tasks,
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
among which the root cause is."""

FIRST_FAILURES = """
    SELECT t.task_id, t.attempt_number, t.job_id, t.name, t.type, t.func_or_class_name AS function, t.end_ns,
           t.node_id, t.worker_id, t.actor_id, t.required_resources, t.closed_by,
           CASE WHEN length(t.error_message) <= $message_limit THEN t.error_message
                ELSE left(t.error_message, $message_limit // 4) || $cut
                     || right(t.error_message, $message_limit - $message_limit // 4) END AS message,
           w.exit_type, w.exit_detail, w.end_ns AS worker_end_ns, coalesce(w.pid, a.pid) AS pid,
           n.end_ns AS node_end_ns, n.node_ip, n.death_reason, n.death_message,
           a.class_name, a.name AS actor_name, a.repr_name, a.death_cause, a.end_ns AS actor_end_ns
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

_UNASKED_EXITS = "exit_type IN ('SYSTEM_ERROR', 'USER_ERROR', 'NODE_OUT_OF_MEMORY')"
_ASKED_FOR = """'"reason":"(?:RAY_KILL|OUT_OF_SCOPE|REF_DELETED|OWNER_DIED)"|exit type: INTENDED_'"""

DEATHS = f"""
    WITH failed AS (
        SELECT worker_id, actor_id FROM unfinished_tasks
        WHERE state = 'FAILED' AND {IN_SCOPE}
          AND (error_type <> 'TASK_EXECUTION_EXCEPTION' OR func_or_class_name LIKE '%.__init__')
    ),
    lives AS (SELECT DISTINCT actor_id, life.worker_id
              FROM (SELECT actor_id, unnest(transitions) AS life FROM actors) WHERE life.worker_id <> ''),
    died AS (
        SELECT workers.worker_id, actor_id, node_id, pid, exit_type, exit_detail, end_ns, job_id
        FROM workers LEFT JOIN lives ON lives.worker_id = workers.worker_id
        WHERE {_UNASKED_EXITS} AND end_ns IS NOT NULL
        UNION ALL
        SELECT worker_id, actor_id, node_id, pid, NULL, NULL, end_ns, job_id FROM actors
        WHERE end_ns IS NOT NULL AND death_cause IS NOT NULL
    )
    SELECT died.worker_id, died.actor_id, died.node_id, died.pid, exit_type, exit_detail, died.end_ns AS at_ns,
           coalesce(actors.job_id, died.job_id) AS job_id, name, class_name, is_detached,
           CASE WHEN exit_type IS NULL OR actors.worker_id = died.worker_id THEN death_cause END AS last_death,
           node_ip, nodes.death_reason AS node_death
    FROM died LEFT JOIN actors ON actors.actor_id = died.actor_id LEFT JOIN nodes ON nodes.node_id = died.node_id
    WHERE ($job_id::VARCHAR IS NULL OR coalesce(actors.job_id, died.job_id) = $job_id)
      AND NOT EXISTS (SELECT 1 FROM failed WHERE failed.worker_id = died.worker_id)
      AND NOT EXISTS (SELECT 1 FROM failed WHERE failed.actor_id = died.actor_id)
      AND (exit_type IS NOT NULL OR NOT EXISTS (
          SELECT 1 FROM died AS told WHERE told.actor_id = died.actor_id AND told.exit_type IS NOT NULL))
      AND NOT regexp_matches(coalesce(last_death, ''), {_ASKED_FOR})
    ORDER BY at_ns, died.worker_id LIMIT $limit
"""  # noqa: S608 - made of constants
"""Workers that ended without being asked to, and actors that died where nobody told of their worker (Ray 2.52 never
does), if no failed attempt tells of it. What a program asked for is not read: there may be a million of those. An actor
that was started again has the death of its last process alone."""

TROUBLED_JOBS = f"""
    SELECT job_id FROM unfinished_tasks WHERE state = 'FAILED'
    UNION SELECT job_id FROM workers WHERE {_UNASKED_EXITS}
    UNION SELECT job_id FROM actors WHERE death_cause IS NOT NULL AND NOT regexp_matches(death_cause, {_ASKED_FOR})
    UNION SELECT job_id FROM actors WHERE name LIKE 'SERVE_%' OR class_name = 'TrainController'
"""  # noqa: S608 - made of constants
"""Jobs in which something failed or died, perhaps by intention, and those that served or trained: reports tell."""
