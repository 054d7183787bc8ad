"""A session that counts as running although its head is silent is called that on every page and in every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.types import ASGIApp

from raykeeper.history.http.keeper_api.operation import PREFIX as API
from raykeeper.history.http.pages.dashboard_bar import bar
from raykeeper.history.store.session_state import DOUBTFUL, SessionState, State
from raykeeper.layout.keys import PolledKey, node_record_key
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import NodeRecord, PolledAnswer, encode_record
from support.asking import ask
from support.history_scene import HEAD_ID, SESSION, STARTED_AT, Scene, a_scene, put_session, session_url

JOBS = "/api/jobs/"
RUNNING = {"submission_id": "nightly", "type": "SUBMISSION", "status": "RUNNING", "entrypoint": "python nightly.py"}
DONE = {"submission_id": "done", "type": "SUBMISSION", "status": "SUCCEEDED", "entrypoint": "python done.py"}
ALIVE, SILENT = SessionState(State.RUNNING), SessionState(State.RUNNING, is_doubtful=True)
API_SESSION = f"{API}/sessions/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
PAGES = (
    "/overview",
    "/job/nightly",
    "/job/nightly/environment",
    "/report",
    "/report/nightly",
    "/job/nightly/report.md",
)
ANSWERS = ("/overview", "/jobs/nightly/overview", "/report", "/jobs/nightly/report", "/jobs/nightly")


async def app_of(folder: Path, state: SessionState) -> ASGIApp:
    """A server whose only session has one job at work and one that is done."""
    scene = a_scene(folder)
    await put_session(scene.store)
    jobs = [{**RUNNING, "start_time": 1}, {**DONE, "start_time": 1, "end_time": 2}]
    scene.sessions.have_polled(SESSION, JOBS, jobs)
    scene.sessions.opened[SESSION] = replace(scene.sessions.opened[SESSION], state=state)
    return scene.app


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_about_it_says_that_its_head_is_silent(path: str, tmp_path: Path) -> None:
    page = await ask(await app_of(tmp_path, SILENT), f"{session_url()}{path}")
    assert page.status == 200
    assert DOUBTFUL in page.text.lower()


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_about_one_whose_head_beats_does_not(path: str, tmp_path: Path) -> None:
    page = await ask(await app_of(tmp_path, ALIVE), f"{session_url()}{path}")
    assert page.status == 200
    assert DOUBTFUL not in page.text.lower()
    assert "running" in page.text.lower()


async def test_a_job_that_is_done_is_not_doubted(tmp_path: Path) -> None:
    page = await ask(await app_of(tmp_path, SILENT), f"{session_url()}/job/done")
    assert page.status == 200
    assert DOUBTFUL not in page.text.lower()


@pytest.mark.parametrize("path", ANSWERS)
async def test_the_json_api_says_it_too(path: str, tmp_path: Path) -> None:
    (tmp_path / "silent").mkdir()
    (tmp_path / "alive").mkdir()
    silent = await ask(await app_of(tmp_path / "silent", SILENT), f"{API_SESSION}{path}")
    alive = await ask(await app_of(tmp_path / "alive", ALIVE), f"{API_SESSION}{path}")
    assert [_is_doubtful(msgspec.json.decode(one.content)) for one in (silent, alive)] == [True, False]


def _is_doubtful(answer: Mapping[str, Any]) -> bool:
    told = answer.get("facts", answer)["is_doubtful"]
    assert isinstance(told, bool)
    return told


async def put_silent_head(scene: Scene) -> None:
    """One that should have beaten long ago: its interval is so short that it is doubted at once, but not silent."""
    head = NodeRecord(
        node_id=HEAD_ID, role="head", started_at=STARTED_AT, beat_at=STARTED_AT, interval_seconds=0.000001
    )
    await scene.store.put(node_record_key(SESSION, HEAD_ID), encode_record(head))
    jobs = msgspec.Raw(msgspec.json.encode([{**RUNNING, "start_time": 1}, {**DONE, "start_time": 1, "end_time": 2}]))
    answer = PolledAnswer(path=JOBS, polled_at=STARTED_AT, status=200, body=jobs)
    await scene.store.put(PolledKey(SESSION, JOBS, 1).key, encode_polled(answer))


async def test_lists_of_sessions_and_of_jobs_say_it(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    await put_silent_head(scene)
    jobs, sessions = await ask(scene.app, "/jobs"), await ask(scene.app, "/sessions")
    listed = msgspec.json.decode((await ask(scene.app, f"{API}/jobs")).content)["jobs"]
    assert [page.text.lower().count(DOUBTFUL) for page in (jobs, sessions)] == [1, 1]
    assert {job["submission_id"]: job["is_doubtful"] for job in listed} == {"nightly": True, "done": False}


def test_the_bar_in_rays_dashboard_says_it() -> None:
    assert DOUBTFUL in bar(SESSION, SILENT, None)
    assert DOUBTFUL not in bar(SESSION, ALIVE, None)
