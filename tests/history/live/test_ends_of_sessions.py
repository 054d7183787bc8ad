"""Real Ray that is killed while its collector lives, or with it: state, time and cause stay right whatever follows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bed.rayenv import RAY_VERSION
from bed.waiting import wait_until
from collector.whole.ray_lives import RayLife, a_ray_life
from history.live.ends import (
    GUESSED,
    NOTICED_SECONDS,
    SEEN,
    WAIT_SECONDS,
    asked,
    check_crash,
    doubted_at,
    gone_at,
    new_folder,
    start_work,
    stored,
)

pytestmark = [
    pytest.mark.bed,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="a worker's own folder needs a mount namespace, so root"),
]


@pytest.fixture
def life(request: pytest.FixtureRequest) -> Iterator[RayLife]:
    """A head at work on a job that never ends by itself."""
    with a_ray_life(new_folder(request.config), RAY_VERSION) as life:
        life.head_collector.start().wait_for("listening for Ray")
        life.head = life.cluster.start_head(life.head_sink)
        start_work(life)
        yield life


def test_a_head_killed_beside_its_collector_crashed_when_it_was_killed(life: RayLife, tmp_path: Path) -> None:
    session = life.stored.id
    [node_id] = life.head.node_ids()
    killed_at = datetime.now(UTC)
    life.head.kill()
    wait_until("the death is recorded", lambda: gone_at(life, session, node_id) is not None, NOTICED_SECONDS)
    assert datetime.now(UTC) - killed_at < timedelta(seconds=NOTICED_SECONDS)
    check_crash(life, session, killed_at, SEEN, tmp_path / "noticed")
    # Ray's container is started again in its pod: another session in the same folder.
    life.head = life.cluster.start_head(life.head_sink)
    first = stored(life, session)
    wait_until("the first session has its end", lambda: first.end(node_id) is not None, WAIT_SECONDS)
    check_crash(life, session, killed_at, SEEN, tmp_path / "replaced")
    # The collector is restarted alone, and ends.
    life.head_collector.kill()
    life.head_collector.start().wait_for("listening for Ray")
    life.head.process.stop(timeout=120.0)
    life.head.kill()
    assert life.head_collector.end() == 0, life.head_collector.output.read_text()
    check_crash(life, session, killed_at, SEEN, tmp_path / "ended")
    assert asked(life, life.stored.id, tmp_path / "second")["session"]["state"] == "ended"


def test_a_head_killed_with_its_collector_crashed_though_the_collector_comes_back(
    life: RayLife, tmp_path: Path
) -> None:
    session = life.stored.id
    [node_id] = life.head.node_ids()
    life.head_collector.kill()  # the first of the two, so that it cannot write down how the raylet ended
    killed_at = datetime.now(UTC)
    life.head.kill()
    first_doubt = asyncio.run(doubted_at(life, session, tmp_path / "doubted"))
    assert first_doubt - killed_at < timedelta(seconds=NOTICED_SECONDS)
    life.head_collector.start().wait_for("listening for Ray")
    wait_until("the death is recorded", lambda: gone_at(life, session, node_id) is not None, WAIT_SECONDS)
    check_crash(life, session, killed_at, GUESSED, tmp_path / "restarted")
    assert life.head_collector.end() == 0, life.head_collector.output.read_text()
    check_crash(life, session, killed_at, GUESSED, tmp_path / "ended")


def test_a_head_that_was_stopped_ended_when_its_raylet_did(life: RayLife, tmp_path: Path) -> None:
    session = life.stored.id
    [node_id] = life.head.node_ids()
    told_at = datetime.now(UTC)
    life.head.process.stop(timeout=120.0)
    stopped_at = datetime.now(UTC)
    life.head.kill()
    wait_until("the end is recorded", lambda: gone_at(life, session, node_id) is not None, NOTICED_SECONDS)
    for step in ("noticed", "ended"):
        found = asked(life, session, tmp_path / step)["session"]
        assert found["state"] == "ended"
        # The raylet is the first to go; the rest of Ray takes its time, on a busy machine most of a minute.
        assert told_at - SEEN < datetime.fromisoformat(found["ended_at"]) < stopped_at + SEEN
        if step == "noticed":
            assert life.head_collector.end() == 0, life.head_collector.output.read_text()
