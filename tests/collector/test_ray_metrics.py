"""What is read of a node's metrics, whatever answers there."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
from aiohttp import web

from bed.waiting import BUSY_FACTOR
from ray_head.scripted_head import ScriptedHead, as_text, scripted, stalled
from raykeeper.collector import ray_metrics
from raykeeper.collector.ray_metrics import (
    MAX_ANSWER_BYTES,
    MAX_LINE_BYTES,
    MAX_LINES,
    RayMetrics,
    Reading,
    WantedLines,
    metrics_port,
    observe_dropped_events,
    observe_metrics,
    parse_line,
    parse_metrics,
)
from raykeeper.layout.records import MAX_COUNT

NODE = "a" * 56
DROPPED = b"ray_aggregator_agent_queue_dropped_events_total"
PORTS_OF_TWO_RAYLETS = json.dumps(  # as Ray 2.52 writes them
    {
        "192.0.2.2:/tmp/ray/session_x/sockets/plasma_store": {"metrics_agent_port": 1, "metrics_export_port": 62459},
        "192.0.2.2:/tmp/ray/session_x/sockets/plasma_store.1": {"metrics_agent_port": 2, "metrics_export_port": 62460},
    }
)
METRICS = b"""# HELP ray_aggregator_agent_queue_dropped_events_total Total number of events dropped.
# TYPE ray_aggregator_agent_queue_dropped_events_total counter
ray_aggregator_agent_queue_dropped_events_total{Component="aggregator_agent",event_type="TASK_LIFECYCLE_EVENT"} 52817.0
ray_aggregator_agent_queue_dropped_events_total{Component="aggregator_agent",event_type="odd } 7"} 1e+02
ray_aggregator_agent_published_events_total{Component="aggregator_agent"} 90.0
"""


def parsed(text: bytes, piece_bytes: int = 1 << 16) -> RayMetrics:
    """What is read of an answer that comes in pieces of this size."""
    wanted = WantedLines()
    for start in range(0, len(text), piece_bytes):
        wanted.feed(text[start : start + piece_bytes])
    wanted.feed(b"\n")
    return parse_metrics(wanted)


def test_losses_of_all_types_are_added() -> None:
    assert parsed(METRICS).dropped_events == 52_917


def test_metrics_without_the_counter_mean_no_loss() -> None:
    assert parsed(b"ray_aggregator_agent_published_events_total 90.0\n").dropped_events == 0


@pytest.mark.parametrize(
    "number", [b"1e300", b"1e9999", b"9" * 30, b"9" * 400, b"1.2.3", b"nan", b"inf", b"-5", b"0x5"]
)
def test_a_number_that_somebody_made_up_fits_into_a_record(number: bytes) -> None:
    """One that is infinite as a number failed the heartbeat it was for."""
    many = b"".join(b'%b{event_type="%d"} %b\n' % (DROPPED, kind, number) for kind in range(2 * MAX_LINES))
    assert 52_917 <= parsed(METRICS + many).dropped_events <= MAX_COUNT


def test_metrics_that_were_made_to_be_slow_are_read_at_once() -> None:
    began = time.process_time()
    for hostile in (
        DROPPED + b"{" + b"}" * (8 << 20),
        (DROPPED + b"{" + b"}" * 100 + b"\n") * 50_000,
        DROPPED * 170_000,
    ):
        assert parsed(hostile).dropped_events == 0
    assert time.process_time() - began < 2 * BUSY_FACTOR


@pytest.mark.parametrize("piece_bytes", [1, 7, 100, 4096])
def test_lines_are_found_wherever_an_answer_is_cut(piece_bytes: int) -> None:
    text = METRICS + b"ray_node_mem_used 7\n" + b"x" * 3 * MAX_LINE_BYTES + b"\nray_node_mem_total 8"
    found = parsed(text, piece_bytes).readings
    assert [(one.name, one.value) for one in found if one.name.startswith("node_")] == [
        ("node_mem_used", 7.0),
        ("node_mem_total", 8.0),
    ]
    assert len(found) == 4


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"node_mem_used 1.5e9", Reading("node_mem_used", {}, 1.5e9)),
        (b"node_mem_used{} 1 1794769955705", Reading("node_mem_used", {}, 1.0)),
        (
            rb'resources{Name="a\"},b=\"c",State="USED"} 2.0',
            Reading("resources", {"Name": 'a"},b="c', "State": "USED"}, 2.0),
        ),
        (b"node_mem_used one", None),
        (b"node_mem_used", None),
        (b'node_mem_used{a="b" 1', None),
    ],
)
def test_a_line_is_a_number_with_labels_or_nothing(line: bytes, expected: Reading | None) -> None:
    assert parse_line(line) == expected


def test_no_more_lines_are_kept_than_any_node_has() -> None:
    wanted = WantedLines()
    for _ in range(3):
        wanted.feed(b'ray_resources{Name="CPU"} 1\n' * MAX_LINES)
    assert len(wanted.lines) == MAX_LINES


def test_a_line_without_end_takes_no_memory() -> None:
    wanted = WantedLines()
    for _ in range(100):
        wanted.feed(b"ray_resources{" + b"x" * 100_000)
        assert len(wanted._rest) <= 2 * MAX_LINE_BYTES
    wanted.feed(b"\nray_node_mem_used 7\n")
    assert wanted.lines == [b"node_mem_used 7"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8080),
        ({f"metrics_export_port_{NODE}": "28080"}, 28080),
        ({f"metrics_export_port_{'b' * 56}": "28080"}, 8080),
        ({f"metrics_export_port_{NODE}": "torn"}, 8080),
        ({"ports_by_node.json": PORTS_OF_TWO_RAYLETS}, 62460),
        ({"ports_by_node.json": '{"10.0.0.1:/tmp/ray/s/sockets/plasma_store": {}}'}, 8080),
        ({"ports_by_node.json": "garbage"}, 8080),
    ],
)
def test_the_port_is_what_ray_wrote_down(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert metrics_port(tmp_path, NODE) == expected


async def test_a_nodes_metrics_are_asked_for_and_silence_is_not_taken_for_zero(tmp_path: Path) -> None:
    head = ScriptedHead()
    head.answer("/metrics", as_text(METRICS))
    port_file = tmp_path / f"metrics_export_port_{NODE}"
    async with scripted(head) as address:
        port_file.write_text(address.rpartition(":")[2])
        assert await observe_dropped_events(tmp_path, NODE) == 52_917
    assert await observe_dropped_events(tmp_path, NODE) is None


async def test_an_answer_without_end_is_cut_and_what_came_before_counts(tmp_path: Path) -> None:
    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"ray_node_mem_used 7\n")
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"# nothing\n" * 10_000)
        return response

    head = ScriptedHead()
    head.answer("/metrics", respond)
    async with scripted(head) as address:
        (tmp_path / f"metrics_export_port_{NODE}").write_text(address.rpartition(":")[2])
        metrics = await observe_metrics(tmp_path, NODE)
    assert metrics is not None
    assert metrics.readings == (Reading("node_mem_used", {}, 7.0),)
    assert metrics.size < MAX_ANSWER_BYTES + (1 << 20)


async def test_an_agent_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_metrics, "ANSWER_SECONDS", 0.2)
    head = ScriptedHead()
    head.answer("/metrics", stalled)
    async with scripted(head) as address:
        (tmp_path / f"metrics_export_port_{NODE}").write_text(address.rpartition(":")[2])
        assert await observe_metrics(tmp_path, NODE) is None
