"""Ray's own count of lost events, read from a node's metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ray_head.scripted_head import ScriptedHead, as_text, scripted
from raykeeper.collector.ray_losses import metrics_port, observe_dropped_events, parse_dropped_events

NODE = "a" * 56
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


def test_losses_of_all_types_are_added() -> None:
    assert parse_dropped_events(METRICS) == 52_917


def test_metrics_without_the_counter_mean_no_loss() -> None:
    assert parse_dropped_events(b"ray_aggregator_agent_published_events_total 90.0\n") == 0


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
