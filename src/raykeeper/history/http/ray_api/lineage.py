"""Tasks as a tree of who called whom, with equal siblings in one group, as Ray's job page shows it. Pure.

An actor stands between its tasks and whoever made it. A task whose caller is not among the tasks is counted but stands
nowhere, as in Ray.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from raykeeper.history.entities.ray_json import task_time_ms
from raykeeper.history.query.context import Row

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
           count(*) AS number, min(creation_ns) AS creation_ns
    FROM placed JOIN attempts USING (task_id)
    GROUP BY above_key, actor_key, group_key, state
    ORDER BY number DESC, creation_ns, group_key, state LIMIT $group_limit  -- the last two: every replica says the same
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
        node.timestamp = min(filter(None, [node.timestamp, task_time_ms(row["creation_ns"])]), default=None)
    root = Node("", "", "ROOT")
    for key, node in nodes.items():
        nodes.get(above[key], root).children.append(node)
    return _totalled_tree(root)


DRIVER_TASK_ID_PREFIX = "f" * 40

_RUNNING = ("RUNNING", "RUNNING_IN_RAY_GET", "RUNNING_IN_RAY_WAIT")
_PENDING = ("PENDING_ARGS_AVAIL", "PENDING_NODE_ASSIGNMENT", "PENDING_OBJ_STORE_MEM_AVAIL", "PENDING_ARGS_FETCH")
_OF_ACTORS = ("ACTOR_TASK", "ACTOR_CREATION_TASK")


@dataclass(frozen=True)
class Attempt:
    task_id: str
    name: str
    class_name: str
    type: str
    state: str
    actor_id: str | None
    parent_task_id: str | None
    created_ms: int | None


@dataclass(frozen=True)
class Actor:
    actor_id: str
    name: str
    """As its `__repr__` says, else its class."""


@dataclass
class Node:
    """A task, an actor, or a group of siblings of one name."""

    name: str
    key: str
    type: str
    timestamp: int | None = None
    link: dict[str, str] | None = None
    state_counts: dict[str, int] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def count(self, state: str, number: int = 1) -> None:
        self.state_counts[state] = self.state_counts.get(state, 0) + number


def lineage_tree(attempts: Sequence[Attempt], actors: Iterable[Actor]) -> list[dict[str, Any]]:
    """The whole tree in Ray's spelling. Of several attempts of a task the first speaks for it."""
    root = _Forest(attempts, actors).grown()
    for node in reversed(list(_preorder(root))):
        _group_equal_children(node)
    return _totalled_tree(root)


def _totalled_tree(root: Node) -> list[dict[str, Any]]:
    """What stands under `root` in Ray's spelling; every node counts what is below it, too."""
    for node in reversed(list(_preorder(root))):
        _total_children(node)
    return _responses(root)


class _Forest:
    """Nodes of tasks and actors, each made once and put under its parent when it is first met."""

    def __init__(self, attempts: Sequence[Attempt], actors: Iterable[Actor]) -> None:
        self._attempts = attempts
        self._tasks = {attempt.task_id: attempt for attempt in reversed(attempts)}
        self._makers = {item.actor_id: item for item in reversed(attempts) if item.type == "ACTOR_CREATION_TASK"}
        self._actor_names = {actor.actor_id: actor.name for actor in actors}
        self._nodes: dict[str, Node] = {}
        self._root = Node("", "", "ROOT")

    def grown(self) -> Node:
        for attempt in self._attempts:
            self._place(attempt.task_id, attempt.created_ms)
            self._nodes[attempt.task_id].count(attempt.state)
        return self._root

    def _place(self, key: str, now_ms: int | None) -> None:
        """Make the node and all above it that are missing, then hang each below the next, the topmost first."""
        new: list[tuple[Node, str | None]] = []
        parent_key: str | None = key
        while parent_key and parent_key not in self._nodes:
            made = self._made(parent_key, now_ms)
            if made is None:
                break
            self._nodes[parent_key] = made[0]
            new.append(made)
            parent_key = made[1]
        for node, above in reversed(new):
            parent = self._root if above == "" else self._nodes.get(above or "")
            if parent is not None:
                parent.children.append(node)

    def _made(self, key: str, now_ms: int | None) -> tuple[Node, str | None] | None:
        """A node and the key of its parent: empty for a driver, None where nothing is known of it."""
        if key.startswith("actor:"):
            return self._made_actor(key.removeprefix("actor:"), now_ms)
        task = self._tasks.get(key)
        if task is None:
            return None
        node = Node(task.name, key, task.type, task.created_ms, {"type": "task", "id": key})
        if task.type in _OF_ACTORS:
            return node, f"actor:{task.actor_id}"
        return node, _caller_key(task)

    def _made_actor(self, actor_id: str, now_ms: int | None) -> tuple[Node, str | None] | None:
        maker = self._makers.get(actor_id)
        if maker is None:
            return None
        name = self._actor_names.get(actor_id, maker.class_name)
        return Node(name, f"actor:{actor_id}", "ACTOR", now_ms, {"type": "actor", "id": actor_id}), _caller_key(maker)


def _caller_key(task: Attempt) -> str:
    caller = task.parent_task_id or ""
    return "" if caller.startswith(DRIVER_TASK_ID_PREFIX) else caller


def _preorder(root: Node) -> Iterator[Node]:
    """Without recursion: a chain of calls may be longer than Python's stack."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _group_equal_children(node: Node) -> None:
    """Put siblings of one name into a group."""
    by_name: dict[str, list[Node]] = {}
    for child in node.children:
        by_name.setdefault(child.name, []).append(child)
    node.children = [same[0] if len(same) == 1 else _group(name, same) for name, same in by_name.items()]


def _group(name: str, members: list[Node]) -> Node:
    return Node(name, name, "GROUP", children=members)


def _oldest(timestamps: Iterable[int | None]) -> int | None:
    return min((time for time in timestamps if time), default=None)


def _total_children(node: Node) -> None:
    """Add up the counts below, be as old as the oldest there, and sort: running, waiting, failed, then by age."""
    node.timestamp = _oldest([node.timestamp, *(child.timestamp for child in node.children)])
    for child in node.children:
        for state, number in child.state_counts.items():
            node.count(state, number)
    node.children.sort(key=_rank)


def _rank(node: Node) -> tuple[int, int, int, int, int]:
    counts = node.state_counts
    return (
        -sum(counts.get(state, 0) for state in _RUNNING),
        -sum(counts.get(state, 0) for state in _PENDING),
        -counts.get("FAILED", 0),
        node.timestamp or sys.maxsize,
        0 if node.type == "ACTOR_CREATION_TASK" else 1,
    )


def _responses(root: Node) -> list[dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for node in reversed(list(_preorder(root))):
        made[id(node)] = {
            "name": node.name,
            "key": node.key,
            "type": node.type,
            "timestamp": node.timestamp,
            "state_counts": node.state_counts,
            "children": [made.pop(id(child)) for child in node.children],
            "link": node.link,
        }
    children: list[dict[str, Any]] = made[id(root)]["children"]
    return children
