"""A real cluster with our collector: it works, comes to rest, is asked everything, and ends; its store is left."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bed.rayenv import RAY_VERSION
from bed.waiting import wait_until
from collector.whole.ray_lives import RayLife, a_ray_life
from history.live.dashboard_questions import Questions
from raykeeper.layout.keys import SessionId, node_record_key
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.raycapture import Recorded

WORK = Path(__file__).with_name("programs") / "work_that_fails.py"
REST_SECONDS = 2.0  # Ray tells of changes once a second
WAIT_SECONDS = 120.0
PATIENT = {"RAY_idle_worker_killing_time_threshold_ms": "600000"}
"""Where a worker ends for being idle before its last task's end was told, Ray counts that task as failed."""
LATER_SECONDS = 600.0  # a head that was lost is silent after 90 seconds, and final after five minutes
End = Literal["stopped", "killed"]


@dataclass(frozen=True)
class RecordedLife:
    """What Ray said last, and what our collector had stored when all was over."""

    session: SessionId
    store: ObjectStore
    answers: list[Recorded]


@contextmanager
def a_recorded_life(folder: Path, end: End) -> Iterator[RecordedLife]:
    """Everything that was started is gone after the block."""
    with a_ray_life(folder, RAY_VERSION) as life:
        life.cluster.environment |= PATIENT
        life.head_collector.start().wait_for("listening for Ray")
        life.head = life.cluster.start_head(life.head_sink)
        _let_work(life)
        questions = Questions(life.cluster)
        _wait_for_rest(questions)
        answers = list(questions.ask_everything())
        life.wait_until_all_is_stored(life.head)
        _wait_for_polls(life, answers)
        (_kill if end == "killed" else _stop)(life)
        _let_time_pass(life)
        yield RecordedLife(life.stored.id, open_store(parse_store_url(f"file://{life.folder}/store", {})), answers)


def _let_work(life: RayLife) -> None:
    python = shlex.quote(str(life.cluster.python))
    life.cluster.submit("works", f"{python} {shlex.quote(str(WORK))} works")
    life.cluster.submit("fails", f"{python} -c 'import sys; sys.exit(3)'")
    life.cluster.submit("stays", f"{python} {shlex.quote(str(WORK))} stays")
    life.wait_for_jobs(works="SUCCEEDED", fails="FAILED", stays="RUNNING")


def _wait_for_rest(questions: Questions) -> None:
    """Return once the same workers have lived for a while, and what stays is at work."""
    seen: list[Any] = [None, 0.0]

    def is_at_rest() -> bool:
        workers = sorted((worker["worker_id"], worker["is_alive"]) for worker in questions.rows("workers"))
        if workers != seen[0]:
            seen[:] = [workers, time.monotonic()]
        states = {task["state"] for task in questions.rows("tasks") if task["name"] == "wait"}
        return states == {"RUNNING", "PENDING_NODE_ASSIGNMENT"} and time.monotonic() - seen[1] > REST_SECONDS

    wait_until("the cluster is at rest", is_at_rest, WAIT_SECONDS)


def _wait_for_polls(life: RayLife, answers: list[Recorded]) -> None:
    """Return once the collector has polled the jobs as they were recorded."""
    [jobs] = [answer.body for answer in answers if answer.name == "jobs.list"]
    wait_until("the jobs were polled", lambda: life.stored.polled("/api/jobs/")[-1:] == [jobs], WAIT_SECONDS)


def _stop(life: RayLife) -> None:
    """As the kubelet ends a pod: Ray first, then the collector, which outlives it."""
    life.head.process.stop(timeout=120.0)
    life.head.kill()
    assert life.head_collector.end() == 0, life.head_collector.output.read_text()


def _let_time_pass(life: RayLife) -> None:
    """Have the last heartbeat as old as if somebody looked later."""
    [node_id] = life.head.node_ids()
    then = time.time() - LATER_SECONDS
    os.utime(life.folder / "store" / node_record_key(life.stored.id, node_id), (then, then))


def _kill(life: RayLife) -> None:
    """As a lost machine ends."""
    life.head.kill()
    life.head_collector.kill()
