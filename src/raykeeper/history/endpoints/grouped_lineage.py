"""The tree of who called whom for more tasks than a page can hold: groups with exact counts, without single members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from raykeeper.history.asked import Row
from raykeeper.history.endpoints.lineage import Node, totalled_tree

GROUPS_LIMIT = 20_000
"""A tree with more groups than this is larger than what a browser shows; the largest groups are kept."""

GROUPS = """
    WITH RECURSIVE attempts AS (
        SELECT task_id, coalesce(nullif(name, ''), func_or_class_name) AS func, func_or_class_name, state, actor_id,
               parent_task_id, creation_ns, type = 'ACTOR_CREATION_TASK' AS is_maker,
               type IN ('ACTOR_TASK', 'ACTOR_CREATION_TASK') AS is_of_actor
        FROM {relation} WHERE {where}
    ), makers AS (
        SELECT actor_id, min(parent_task_id) AS caller, min(split_part(func_or_class_name, '.', 1)) AS class_name
        FROM attempts WHERE is_maker GROUP BY actor_id
    ), called AS (      -- every task once, with its caller and the actor that stands between
        SELECT attempts.task_id, min(func) AS func,
               min(if(is_of_actor, makers.caller, parent_task_id)) AS caller,
               min(if(is_of_actor, coalesce(nullif(actors.repr_name, ''), actors.class_name, makers.class_name), NULL))
                   AS actor
        FROM attempts LEFT JOIN makers ON makers.actor_id = attempts.actor_id
                      LEFT JOIN actors ON actors.actor_id = attempts.actor_id
        GROUP BY attempts.task_id
    ), placed AS (      -- a group is known by the hash of the names on the way to it
        SELECT task_id, func, actor, 0::UBIGINT AS above_key,
               if(actor IS NULL, 0, hash(0::UBIGINT, actor, 'actor')) AS actor_key,
               hash(if(actor IS NULL, 0, hash(0::UBIGINT, actor, 'actor')), func) AS group_key
        FROM called WHERE starts_with(caller, repeat('f', 40))
        UNION ALL
        SELECT called.task_id, called.func, called.actor, placed.group_key,
               if(called.actor IS NULL, placed.group_key, hash(placed.group_key, called.actor, 'actor')),
               hash(if(called.actor IS NULL, placed.group_key, hash(placed.group_key, called.actor, 'actor')),
                    called.func)
        FROM called JOIN placed ON called.caller = placed.task_id
    )
    SELECT above_key, actor_key, group_key, any_value(actor) AS actor, any_value(placed.func) AS func, state,
           count(*) AS number, min(creation_ns) // 1000000 AS created_ms
    FROM placed JOIN attempts USING (task_id)
    GROUP BY above_key, actor_key, group_key, state ORDER BY number DESC LIMIT $group_limit
"""


def grouped_tree(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The tree of such groups; a group whose own place was cut away stands at the top."""
    rows = list(rows)
    nodes: dict[int, Node] = {}
    above: dict[int, int] = {}
    for row in rows:
        if row["actor"] is not None:
            nodes.setdefault(row["actor_key"], Node(row["actor"], row["actor"], "GROUP"))
            above[row["actor_key"]] = row["above_key"]
        node = nodes.setdefault(row["group_key"], Node(row["func"], row["func"], "GROUP"))
        above[row["group_key"]] = row["above_key"] if row["actor"] is None else row["actor_key"]
        node.count(row["state"], row["number"])
        node.timestamp = min(filter(None, [node.timestamp, row["created_ms"]]), default=None)
    root = Node("", "", "ROOT")
    for key, node in nodes.items():
        nodes.get(above[key], root).children.append(node)
    return totalled_tree(root)
