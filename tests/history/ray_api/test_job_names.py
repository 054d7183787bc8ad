"""A job is found by any of its names, everywhere alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.entities.job import Job, job_named, newest_first
from support.asking import ask
from support.history_scene import SESSION, Scene, a_scene, put_session, session_url

TRY = "nightly-x7k2p"
JOB = {
    "type": "SUBMISSION",
    "job_id": "02000000",
    "submission_id": TRY,
    "status": "FAILED",
    "message": "\x1b[36mValueError: no\x1b[0m",
    "start_time": 1_794_000_000_000,
    "end_time": 1_794_000_060_000,
    "driver_node_id": "",
    "metadata": {},
    "runtime_env": {},
}


def a_job(submission_id: str, start_time: int | None, **more: Any) -> Job:
    return Job({"type": "SUBMISSION", "submission_id": submission_id, "start_time": start_time, **more})


def test_an_id_means_its_job_and_a_rayjob_its_last_try() -> None:
    first, second = a_job("nightly-aaaaa", 1), a_job("nightly-bbbbb", 2, job_id="07000000")
    other = a_job("nightly-report", 9)
    jobs = [first, second, other]
    for name, job in {"nightly-aaaaa": first, "07000000": second, "nightly": second, "report": None, "": None}.items():
        assert job_named(jobs, name) is job


def test_jobs_that_never_started_come_last() -> None:
    waiting, old, new = a_job("w", None), a_job("o", 1), a_job("n", 2)
    assert newest_first([waiting, old, new]) == [new, old, waiting]


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    scene.sessions.have_polled(SESSION, "/api/jobs/", [JOB])
    return scene


@pytest.mark.parametrize("name", [TRY, "02000000", "nightly"])
async def test_every_page_and_answer_about_a_job_takes_all_its_names(scene: Scene, name: str) -> None:
    site = f"/api/keeper/v1/sessions/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}/jobs/{name}"
    paths = [
        f"{session_url()}/job/{name}",
        f"{session_url()}/report/{name}",
        f"{session_url()}/api/jobs/{name}",
        f"{session_url()}/api/jobs/{name}/logs",
        *(f"{site}{part}" for part in ("", "/overview", "/report", "/log")),
    ]
    assert {path: (await ask(scene.app, path)).status for path in paths} == dict.fromkeys(paths, 200)


async def test_a_name_of_no_job_is_told_as_such_everywhere(scene: Scene) -> None:
    for path in ("job", "report", "api/jobs"):
        assert (await ask(scene.app, f"{session_url()}/{path}/nobody")).status == 404


async def test_why_a_job_failed_is_told_without_codes_of_a_terminal(scene: Scene) -> None:
    [job] = (await ask(scene.app, f"{session_url()}/api/keeper/v1/jobs")).body["jobs"]
    assert job["failure"]
    assert "\x1b" not in job["failure"]
