"""Resource-hours: what was there, what was asked for, what was used."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raykeeper.history.overview.resources import (
    Sample,
    amounts_of,
    asked_hours,
    available_hours,
    hours_in_words,
    merged_hours,
    parse_sample,
    spread,
    used_hours,
)
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.records import PolledAnswer
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


def test_use_is_the_mean_between_measurements() -> None:
    samples = [Sample(0, {"CPU": 2}), Sample(HOUR, {"CPU": 4, "GPU": 1}), Sample(3 * HOUR, {"CPU": 0})]
    assert used_hours(samples) == pytest.approx({"CPU": 3 + 4, "GPU": 0.5})
    assert used_hours(samples[:1]) == {}


def test_a_measurement_adds_up_all_machines() -> None:
    body = {
        "data": {
            "summary": [
                {"cpu": 50.0, "cpus": [8, 4], "mem": [9 * GIB, 0, 0, 2 * GIB], "gpus": [{"utilizationGpu": 25}]},
                {"cpu": 100.0, "cpus": [2, 2], "mem": [9 * GIB, 0, 0, GIB], "gpus": []},
                {},
            ]
        }
    }
    sample = parse_sample(answer(body))
    assert sample is not None
    assert sample.used == pytest.approx({"CPU": 6, "memory": 3, "GPU": 0.25})
    assert [parse_sample(answer({"msg": "no"})), parse_sample(answer(body, status=500))] == [None, None]


def answer(body: object, status: int = 200) -> PolledAnswer:
    raw = msgspec.Raw(msgspec.json.encode(body))
    return PolledAnswer(path="/nodes", polled_at=datetime(2026, 11, 15, tzinfo=UTC), status=status, body=raw)


def test_few_of_many_measurements_are_read_evenly_with_both_ends() -> None:
    keys = [PolledKey(SessionId("n", "c", "s"), "x", number) for number in range(1000)]
    chosen = [key.polled_ms for key in spread(keys, 5)]
    assert chosen == [0, 250, 500, 749, 999]
    assert spread(keys[:3], 5) == keys[:3]


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
