"""What all of a history server says about the end of a session of real Ray."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bed.fixtures import run_folder
from bed.waiting import BUSY_FACTOR, wait_until
from collector.whole.ray_lives import RayLife
from raykeeper.layout.keys import SessionId
from support.asking import ask
from support.stored_sessions import StoredSession
from support.whole_history import built_server

WORK = Path(__file__).with_name("programs") / "work_that_fails.py"
NOTICED_SECONDS = 30 * BUSY_FACTOR
WAIT_SECONDS = 120.0
SEEN = timedelta(seconds=5 * BUSY_FACTOR)
"""How exact an end is that a collector saw; it looks every second."""
GUESSED = timedelta(seconds=15 * BUSY_FACTOR)
"""And one that it tells by the last log lines; Ray writes some every few seconds."""


def new_folder(config: pytest.Config) -> Path:
    """For one life of Ray; its processes end with the test run at the latest."""
    folder = run_folder(config) / f"ends-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    return folder


def start_work(life: RayLife, job: str = "stays") -> None:
    """Return once a job that never ends by itself runs, and the store knows."""
    python = shlex.quote(str(life.cluster.python))
    life.cluster.submit(job, f"{python} {shlex.quote(str(WORK))} stays")
    life.wait_for_jobs(**{job: "RUNNING"})
    life.wait_until_all_is_stored(life.head)
    wait_until("the job was polled", lambda: polled_statuses(life).get(job) == "RUNNING", WAIT_SECONDS)


def check_crash(
    life: RayLife,
    session: SessionId,
    killed_at: datetime,
    slack: timedelta,
    folder: Path,
    *,
    job_name: str = "stays",
    rule: str = "crashed_cluster",
) -> None:
    """List, page, state API and report say that it crashed, when and why, and that its job was lost with it."""
    found = asked(life, session, folder, job_name)
    for told in (found["session"], found["overview"]["facts"]):
        assert told["state"] == "crashed", told
        assert abs(datetime.fromisoformat(told["ended_at"]) - killed_at) < slack, (told["ended_at"], killed_at)
    assert found["job_report"]["root_cause"]["rule"] == rule, found["job_report"]["root_cause"]
    assert rule in [cause["rule"] for cause in found["report"]["causes"] if cause["ends_job"]]
    [job] = [job for job in found["jobs"] if job["submission_id"] == job_name]
    assert (job["status"], job["message"]) == ("FAILED", "Cluster ended")
    assert abs(datetime.fromtimestamp(job["end_time"] / 1000, UTC) - killed_at) < slack
    assert {node["state"] for node in found["nodes"]["data"]["result"]["result"]} == {"DEAD"}


def asked(life: RayLife, session: SessionId, folder: Path, job: str = "") -> dict[str, Any]:
    return asyncio.run(_answers(life, session, folder, job))


async def _answers(life: RayLife, session: SessionId, folder: Path, job: str) -> dict[str, Any]:
    """What a history server says that sees the store for the first time."""
    names = f"{session.namespace}/{session.cluster}/{session.session}"
    paths = {
        "session": f"/api/keeper/v1/sessions/{names}",
        "overview": f"/api/keeper/v1/sessions/{names}/overview",
        "report": f"/api/keeper/v1/sessions/{names}/report",
        "jobs": f"/s/{names}/api/jobs/",
        "nodes": f"/s/{names}/api/v0/nodes",
    }
    if job:
        paths["job_report"] = f"/api/keeper/v1/sessions/{names}/jobs/{job}/report"
    async with built_server(life.folder / "store", folder) as app:
        answers = {name: await ask(app, path) for name, path in paths.items()}
        assert {name: answer.status for name, answer in answers.items()} == dict.fromkeys(paths, 200)
        return {name: answer.body for name, answer in answers.items()}


async def doubted_at(life: RayLife, session: SessionId, folder: Path) -> datetime:
    """When a server that runs all the time was first asked and did not say any more that the session surely runs."""
    names = f"{session.namespace}/{session.cluster}/{session.session}"
    async with built_server(life.folder / "store", folder) as app, asyncio.timeout(WAIT_SECONDS):
        while True:
            asked_at = datetime.now(UTC)
            told = (await ask(app, f"/api/keeper/v1/sessions/{names}")).body
            if told["is_doubtful"] or told["state"] != "running":
                return asked_at
            await asyncio.sleep(0.5)


def stored(life: RayLife, session: SessionId) -> StoredSession:
    return StoredSession(life.folder / "store", session)


def gone_at(life: RayLife, session: SessionId, node_id: str) -> datetime | None:
    """Since when the raylet of a node is gone, by its collector."""
    beat = stored(life, session).node(node_id)
    return beat.raylet_gone_at if beat else None


def polled_statuses(life: RayLife) -> dict[str, str]:
    """What the collector heard last about each job."""
    polled = life.stored.polled("/api/jobs/")
    return {job["submission_id"]: job["status"] for job in polled[-1]} if polled else {}
