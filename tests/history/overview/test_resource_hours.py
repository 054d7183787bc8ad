"""Resource-hours: what was there, what was asked for, what was used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.overview.resources import (
    amounts_of,
    asked_hours,
    available_hours,
    hours_in_words,
    merged_hours,
)
from support.ingest_scene import START_NS, definition, lifecycle, task_id
from support.overview_scene import HOUR, actor_events, asked_about, method_events

GROUP = "2d7357c07289a5b2c9b4074d4e1f02000000"
GIB = 1 << 30


def test_placement_groups_count_once_and_names_of_nodes_not_at_all() -> None:
    wanted = {
        "CPU": 1,
        f"CPU_group_{GROUP}": 2,
        f"CPU_group_0_{GROUP}": 2,
        f"bundle_group_{GROUP}": 0.001,
        f"bundle_group_0_{GROUP}": 0.001,
        "node:10.0.0.1": 1,
        "memory": 3 * GIB,
    }
    assert amounts_of(json.dumps(wanted)) == {"CPU": 3, "memory": 3}
    assert amounts_of(None) == amounts_of("{}") == {}


async def test_tasks_ask_for_what_they_require_while_they_run(tmp_path: Path) -> None:
    done, open_one, pending = task_id(1), task_id(2), task_id(3, job=2)
    events = [
        definition(done, requiredResources={"CPU": 2.0, "GPU": 0.5}),
        lifecycle(done, [("RUNNING", HOUR), ("FINISHED", 3 * HOUR)]),
        definition(open_one),
        lifecycle(open_one, [("RUNNING", 0)]),
        definition(pending, requiredResources={"CPU": 100.0}),
        lifecycle(pending, [("PENDING_ARGS_AVAIL", 0)]),
    ]
    async with asked_about(tmp_path, events) as asked:
        hours = await asked_hours(asked, None, START_NS + 4 * HOUR)
        of_job = await asked_hours(asked, "02000000", START_NS + 4 * HOUR)
    assert hours == pytest.approx({"CPU": 2 * 2 + 4, "GPU": 1})
    assert of_job == {}


async def test_an_actor_holds_its_resources_for_life_and_its_methods_none(tmp_path: Path) -> None:
    actor = actor_events([("ALIVE", HOUR), ("DEAD", 6 * HOUR)], requiredResources={"GPU": 1.0})
    method = method_events([("RUNNING", HOUR), ("FINISHED", 2 * HOUR)])
    async with asked_about(tmp_path, [*actor, *method]) as asked:
        assert await asked_hours(asked, None, START_NS + 9 * HOUR) == pytest.approx({"GPU": 5})


def test_nodes_offer_what_they_have_until_they_end() -> None:
    nodes: list[dict[str, Any]] = [
        {"resources_total": '{"CPU": 4}', "started_ns": 0, "end_ns": 2 * HOUR},
        {"resources_total": '{"CPU": 1, "GPU": 8}', "started_ns": HOUR, "end_ns": None},
        {"resources_total": '{"CPU": 99}', "started_ns": None, "end_ns": None},
    ]
    assert available_hours(nodes, until_ns=4 * HOUR) == pytest.approx({"CPU": 11, "GPU": 24})


def test_what_was_never_measured_is_not_called_zero() -> None:
    rows = merged_hours({"CPU": 8, "worker": 1}, {"CPU": 2}, {"GPU": 1})
    assert [(row.name, row.available, row.asked, row.used) for row in rows] == [
        ("CPU", 8, 2, None),
        ("GPU", 0, 0, 1),
        ("worker", 1, 0, None),
    ]


def test_hours_are_told_with_the_digits_that_matter() -> None:
    assert [hours_in_words(hours) for hours in (0, 1e-7, 0.25, 12.345, 123456)] == [
        "0",
        "less than 0.001",
        "0.25",
        "12.3",
        "123,456",
    ]
