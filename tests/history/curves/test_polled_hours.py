"""Hours from what the head was asked once a minute, for sessions without samples."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from raykeeper.history.curves.polled import PolledSample, alternating, parse_polled, spread
from raykeeper.history.curves.usage import polled_hours
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.records import PolledAnswer

HOUR = 3600 * 1_000_000_000
GIB = 1 << 30
KEYS = [PolledKey(SessionId("n", "c", "s"), "x", number) for number in range(1000)]


def test_use_is_the_mean_between_measurements() -> None:
    cpus, gpus = {"cpu": 8.0}, {"cpu": 8.0, "gpu": 1.0}
    samples = [
        PolledSample(0, 1, {"cpu": 2}, cpus),
        PolledSample(HOUR, 1, {"cpu": 4, "gpu": 1}, gpus),
        PolledSample(3 * HOUR, 1, {"cpu": 0}, cpus),
    ]
    hours = {row.name: row for row in polled_hours(samples)}
    assert {name: row.used for name, row in hours.items()} == pytest.approx({"CPU": 3 + 4, "GPU": 0.5 + 1})
    assert hours["CPU"].available == pytest.approx(24)
    assert polled_hours(samples[:1]) == ()


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
    sample = parse_polled(answer(body))
    assert sample is not None
    assert sample.used == pytest.approx({"cpu": 6, "memory": 3 * GIB, "gpu": 0.25, "gpu_memory": 0})
    assert (sample.nodes, sample.total["cpu"]) == (2, 10)
    assert [parse_polled(answer({"msg": "no"})), parse_polled(answer(body, status=500))] == [None, None]


def answer(body: object, status: int = 200) -> PolledAnswer:
    raw = msgspec.Raw(msgspec.json.encode(body))
    return PolledAnswer(path="/nodes", polled_at=datetime(2026, 11, 15, tzinfo=UTC), status=status, body=raw)


def test_few_of_many_measurements_are_read_evenly_with_both_ends() -> None:
    chosen = [key.polled_ms for key in spread(KEYS, 5)]
    assert chosen == [0, 250, 500, 749, 999]
    assert spread(KEYS[:3], 5) == KEYS[:3]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 60])
def test_what_is_read_first_is_spread_over_the_time(number: int) -> None:
    ordered = alternating(KEYS[:number])
    assert sorted(ordered) == KEYS[:number]
    assert {key.polled_ms for key in ordered[:2]} <= {0, number - 1}
