"""Real Ray whose head is lost at once, with its collector: the session has no end, and all that was sealed is there."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from bed.processes import ProcessId
from bed.rayenv import RAY_VERSION
from bed.waiting import wait_until
from collector.whole.ray_lives import a_ray_life
from support.ray_clusters import RayNode

pytestmark = [
    pytest.mark.bed,
    pytest.mark.skipif(os.geteuid() != 0, reason="a worker's own folder needs a mount namespace, so root"),
]


def processes_below(node: RayNode) -> list[ProcessId]:
    """All that Ray has started there: some of them rename themselves, and others outlive their parent."""
    assert node.process.id is not None
    below = psutil.Process(node.process.id.pid).children(recursive=True)
    found = [ProcessId.of(process.pid) for process in below]
    return [process for process in found if process is not None]


def test_a_session_whose_head_was_lost_has_no_end_but_can_be_read(tmp_path: Path) -> None:
    with a_ray_life(tmp_path, RAY_VERSION) as life:
        life.head_collector.start().wait_for("listening for Ray")
        life.head = life.cluster.start_head(life.head_sink)
        [node_id] = life.head.node_ids()
        life.wait_until_all_is_stored(life.head)
        wait_until("the heartbeat is there", lambda: life.stored.node(node_id))
        wait_until("its first logs are there", lambda: "raylet.out" in life.stored.logs(node_id))
        wait_until("it stands in the catalog", life.stored.catalog)
        wait_until("the dashboard was asked", lambda: life.stored.polled("/api/version"))
        started = processes_below(life.head)
        life.head.kill()
        life.head_collector.kill()
        assert [process for process in started if process.alive] == []
        assert life.stored.end(node_id) is None
        assert life.stored.catalog() == {"start"}
        record, beat = life.stored.record(), life.stored.node(node_id)
        assert record is not None
        assert beat is not None
        assert (record.head_node_id, beat.role) == (node_id, "head")
        assert len(life.stored.event_ids()) >= life.published[node_id] > 0
        said = (life.head.session / "logs" / "raylet.out").read_bytes()
        assert said.startswith(life.stored.logs(node_id)["raylet.out"])
