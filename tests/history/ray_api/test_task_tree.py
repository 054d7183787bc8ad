"""The tree of who called whom: in groups it says the same as with all its members."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from raykeeper.history.http.ray_api.lineage import GROUPS, GROUPS_LIMIT, Actor, Attempt, grouped_tree, lineage_tree
from raykeeper.history.http.ray_api.state_query import StateQuery
from raykeeper.history.http.ray_api.tasks import visible_tasks
from support.asking import ask
from support.goldensession import Moments, dashboard, golden_session

DRIVER = "f" * 40 + "01000000"


def an_attempt(task_id: str, name: str = "step", **more: Any) -> Attempt:
    known = {"class_name": "", "type": "NORMAL_TASK", "state": "FINISHED", "actor_id": None}
    return Attempt(task_id=task_id, name=name, **{**known, "parent_task_id": DRIVER, "created_ms": 1, **more})


async def test_groups_of_a_large_session_count_what_the_whole_tree_counts(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        where = visible_tasks(StateQuery())
        groups = await asked.rows(GROUPS.format(relation="task_list", where=where), {"group_limit": GROUPS_LIMIT})
        answered = await ask(dashboard(asked), "/api/v0/tasks/summarize?summary_by=lineage")
    whole = answered.body["data"]["result"]["result"]["node_id_to_summary"]["cluster"]["summary"]
    assert by_name(grouped_tree(groups)) == by_name_without_members(whole)
    assert sum(sum(node["state_counts"].values()) for node in whole) == 178


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_groups_of_one_size_and_time_stand_in_one_order_on_every_replica(threads: int) -> None:
    with duckdb.connect() as database:
        database.execute(f"SET threads = {threads}")
        database.execute("CREATE TABLE actors (actor_id VARCHAR, repr_name VARCHAR, class_name VARCHAR)")
        database.execute(f"""
            CREATE TABLE tasks AS
            SELECT 'task' || id AS task_id, 'step_' || id % 40 AS name, '' AS func_or_class_name, 'FINISHED' AS state,
                   NULL::VARCHAR AS actor_id, '{DRIVER}' AS parent_task_id, 7 AS creation_ns, 'NORMAL_TASK' AS type
            FROM range(4000) ids(id) ORDER BY hash(id + {threads})
        """)
        said = database.execute(GROUPS.format(relation="tasks", where="true"), {"group_limit": GROUPS_LIMIT}).fetchall()
    assert said == sorted(said, key=lambda row: row[2])  # the key of the group


def by_name(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {node["name"]: (node["state_counts"], node["timestamp"], by_name(node["children"])) for node in nodes}


def by_name_without_members(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A group of members becomes one node that has all that they called."""
    tree = {}
    for node in nodes:
        members = node["children"] if node["type"] == "GROUP" else [node]
        below = regrouped([child for member in members for child in member["children"]])
        tree[node["name"]] = (node["state_counts"], node["timestamp"], by_name_without_members(below))
    return tree


def regrouped(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes of one name from under several members as one group."""
    groups: dict[str, dict[str, Any]] = {}
    for node in nodes:
        members = node["children"] if node["type"] == "GROUP" else [node]
        group = groups.setdefault(
            node["name"], {"name": node["name"], "type": "GROUP", "children": [], "state_counts": {}, "timestamp": None}
        )
        group["children"] += members
        group["timestamp"] = min(filter(None, [group["timestamp"], node["timestamp"]]), default=None)
        for state, number in node["state_counts"].items():
            group["state_counts"][state] = group["state_counts"].get(state, 0) + number
    return list(groups.values())


def test_siblings_of_one_name_become_a_group() -> None:
    [group, other] = lineage_tree([an_attempt("a"), an_attempt("b"), an_attempt("c", "other")], [])
    assert (group["type"], group["state_counts"], [child["key"] for child in group["children"]]) == (
        "GROUP",
        {"FINISHED": 2},
        ["a", "b"],
    )
    assert (other["type"], other["link"]) == ("NORMAL_TASK", {"type": "task", "id": "c"})


def test_a_child_may_come_before_its_parent() -> None:
    [parent] = lineage_tree([an_attempt("a", parent_task_id="b"), an_attempt("b", "parent")], [])
    assert [child["key"] for child in parent["children"]] == ["a"]
    assert parent["state_counts"] == {"FINISHED": 2}


def test_an_actor_stands_between_its_tasks_and_its_maker() -> None:
    made = an_attempt("m", "A.__init__", type="ACTOR_CREATION_TASK", actor_id="x", class_name="A")
    called = an_attempt("t", "A.run", type="ACTOR_TASK", actor_id="x", state="FAILED")
    [actor] = lineage_tree([made, called], [Actor("x", "A(1)")])
    assert (actor["name"], actor["type"], actor["key"]) == ("A(1)", "ACTOR", "actor:x")
    assert actor["state_counts"] == {"FINISHED": 1, "FAILED": 1}
    assert [child["name"] for child in actor["children"]] == ["A.run", "A.__init__"]  # failures first


def test_a_task_whose_caller_is_unknown_stands_nowhere() -> None:
    assert lineage_tree([an_attempt("a", parent_task_id="gone")], []) == []


def test_a_task_that_calls_itself_is_no_endless_tree() -> None:
    assert lineage_tree([an_attempt("a", parent_task_id="a"), an_attempt("b", parent_task_id="a")], []) == []


def test_a_long_chain_of_calls_is_no_problem() -> None:
    chain = [an_attempt(f"{number}", parent_task_id=f"{number - 1}") for number in range(1, 20_000)]
    [first] = lineage_tree([an_attempt("0"), *chain], [])
    assert first["state_counts"] == {"FINISHED": 20_000}
