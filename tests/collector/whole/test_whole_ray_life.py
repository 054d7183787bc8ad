"""Real Ray, a head and a worker with a collector each, from the start to a graceful end: all of it is in the store.

The collectors are killed at random moments of the load, and the worker's raylet is replaced once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.fixtures import run_folder
from bed.rayenv import RAY_VERSION
from bed.waiting import wait_until
from collector.whole.ray_lives import RayLife, a_ray_life
from raykeeper.layout.records import SessionRecord

KILLS, MANY_KILLS = 8, 50
SECONDS_PER_KILL = 2.5  # the longest pause before one, so that the last meets the load, too
RECORDED_SECONDS = 180.0  # ten are for Ray's version, which a starved head says late

pytestmark = [
    pytest.mark.bed,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="a worker's own folder needs a mount namespace, so root"),
]


OLDEST = "2.52.0"
LIVES = [
    pytest.param((RAY_VERSION, KILLS), id=RAY_VERSION),
    pytest.param((RAY_VERSION, MANY_KILLS), id=f"{RAY_VERSION}-many-kills", marks=pytest.mark.soak),
    pytest.param((OLDEST, MANY_KILLS), id=f"{OLDEST}-many-kills", marks=pytest.mark.soak),
]


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest) -> Iterator[RayLife]:
    """A whole life, told by its store."""
    version, kills = request.param
    folder = run_folder(request.config) / f"whole-{version}-{kills}-{os.getpid()}"
    folder.mkdir()
    with a_ray_life(folder, version) as life:
        live(life, kills)
        yield life


def live(life: RayLife, kills: int) -> None:
    life.start()
    early = wait_until("the session is recorded", lambda: life.stored.record(), RECORDED_SECONDS)
    assert isinstance(early, SessionRecord)
    life.submit_work(kills * SECONDS_PER_KILL)
    life.kill_collectors(kills, random.Random(5))
    assert life.cluster.job_statuses()["works"] == "RUNNING"
    life.end_work()
    life.wait_until_all_is_stored(life.worker)
    life.restart_worker()
    life.run_work_elsewhere()
    life.wait_until_all_is_stored(life.worker)
    life.wait_until_all_is_stored(life.head)
    life.stop_ray()
    for collector in (life.worker_collector, life.head_collector):
        assert collector.end() == 0, collector.output.read_text()


def test_every_event_that_ray_published_is_in_the_store(life: RayLife) -> None:
    assert len(life.published) == 3
    assert all(life.published.values())


def files_below(logs: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(logs)): file.read_bytes()
        for file in logs.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def test_every_byte_of_every_log_reads_back(life: RayLife) -> None:
    for node in (life.head, life.worker):
        on_disk = files_below(node.session / "logs")
        stored: dict[str, bytes] = {}
        for node_id in node.node_ids():
            stored |= life.stored.logs(node_id)
        assert stored.keys() == on_disk.keys()
        assert [path for path in on_disk if stored[path] != on_disk[path]] == []


def test_data_is_filed_under_the_node_that_made_it(life: RayLife) -> None:
    first, second = life.worker.node_ids()
    [head] = life.head.node_ids()
    assert set(life.stored.events()) == {head, first, second}
    assert life.stored.log_nodes() == {head, first, second}
    assert "raylet.out" in life.stored.logs(first)
    assert "raylet.1.out" in life.stored.logs(second)
    assert not {"raylet.out", "raylet.err"} & life.stored.logs(second).keys()


def test_the_records_tell_the_start_and_a_complete_end(life: RayLife) -> None:
    [head] = life.head.node_ids()
    start = life.stored.start()
    assert start is not None
    assert (start.head_node_id, start.ray_version) == (head, life.cluster.version)
    assert life.stored.catalog() == {"start", "end"}
    for node_id in (head, *life.worker.node_ids()):
        end = life.stored.end(node_id)
        assert end is not None
        assert (end.is_complete, end.missing_log_bytes, end.missing_event_bytes) == (True, 0, 0)
    first, second = (life.stored.end(node_id) for node_id in life.worker.node_ids())
    assert first is not None
    assert second is not None
    assert (first.reason, second.reason) == ("replaced", "terminated")


def test_what_events_do_not_carry_was_polled(life: RayLife) -> None:
    jobs = {job["submission_id"]: job for job in life.stored.polled("/api/jobs/")[-1]}
    assert (jobs["works"]["status"], jobs["fails"]["status"]) == ("SUCCEEDED", "FAILED")
    assert life.was_polled()
