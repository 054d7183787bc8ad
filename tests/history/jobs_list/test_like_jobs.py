"""Jobs like another one: the last success of the same script, and those with the same root cause."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

from history.jobs_list.test_all_jobs import a_job, put_summary, ray_job, session
from raykeeper.history.jobs_list.find import jobs_with_failure, last_success
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import HeadlineSummary
from support.asking import ask
from support.conditions import eventually
from support.history_scene import SESSION, STARTED_AT, Scene, a_scene, put_session

HOUR = timedelta(hours=1)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


async def put_runs(scene: Scene) -> None:
    """Six runs, an hour apart, of two scripts."""
    runs = [
        ("SUCCEEDED", "python train.py --lr 1"),
        ("SUCCEEDED", "python train.py --lr 2"),
        ("FAILED", "python train.py --lr 1"),
        ("SUCCEEDED", "python etl.py"),
        ("SUCCEEDED", "cd x && python jobs/train.py"),
    ]
    for number, (status, command) in enumerate(runs):
        at = STARTED_AT + number * HOUR
        await put_summary(
            scene, session(number), [a_job(f"run-{number}", status=status, entrypoint=command, started_at=at)], at
        )
    other = SessionId("team-b", "train", "session_009")
    await put_summary(scene, other, [a_job("other", entrypoint="python train.py --lr 1")])


async def test_the_last_success_of_the_very_same_command_counts_first(scene: Scene) -> None:
    await put_runs(scene)
    found = await last_success(scene.history, "team-a", "python train.py --lr 1", None)
    assert found is not None
    assert (found.entry.id, found.job.name) == (session(0), "run-0")


async def test_else_the_last_success_of_the_same_script_counts(scene: Scene) -> None:
    await put_runs(scene)
    found = await last_success(scene.history, "team-a", "python train.py --lr 3", None)
    before = await last_success(scene.history, "team-a", "python train.py --lr 3", STARTED_AT + 2 * HOUR)
    assert found is not None
    assert before is not None
    assert (found.job.name, before.job.name) == ("run-4", "run-1")


async def test_another_script_or_namespace_is_none(scene: Scene) -> None:
    await put_runs(scene)
    assert await last_success(scene.history, "team-a", "python other.py", None) is None
    assert await last_success(scene.history, "team-b", "python etl.py", None) is None


async def test_a_job_is_compared_with_its_last_success_by_default(scene: Scene) -> None:
    await put_runs(scene)
    await put_session(scene.store)
    started_ms = int((STARTED_AT + 6 * HOUR).timestamp() * 1000)
    failed = ray_job(status="FAILED", entrypoint="python train.py --lr 2", start_time=started_ms)
    scene.sessions.have_polled(SESSION, "/api/jobs/", [failed])
    answered = await ask(scene.app, f"/compare?a={SESSION}/live")
    assert answered.status == 302
    assert unquote(answered.headers["location"]) == f"/compare?a={session(1)}/run-1&b={SESSION}/live"


async def test_a_job_without_a_success_before_it_is_asked_what_to_compare_it_with(scene: Scene) -> None:
    await put_session(scene.store)
    scene.sessions.have_polled(SESSION, "/api/jobs/", [ray_job(status="FAILED")])
    page = await ask(scene.app, f"/compare?a={SESSION}/live")
    assert page.status == 200
    assert "Run B" in page.text


def headline(fingerprint: str) -> HeadlineSummary:
    return HeadlineSummary(text="ValueError: boom", fingerprint=fingerprint)


async def test_the_same_root_cause_is_found_in_other_jobs_of_the_namespace(scene: Scene) -> None:
    for number, fingerprint in enumerate(("f1", "f2", "f1")):
        at = STARTED_AT + number * HOUR
        failed = a_job(f"run-{number}", status="FAILED", headline=headline(fingerprint), started_at=at)
        await put_summary(scene, session(number), [failed], at)
    await put_summary(scene, SessionId("team-b", "x", "y"), [a_job("other", status="FAILED", headline=headline("f1"))])
    found = await jobs_with_failure(scene.history, "team-a", "f1")
    assert [one.job.name for one in found] == ["run-2", "run-0"]


async def test_a_job_says_where_its_failure_was_seen_before(scene: Scene) -> None:
    await put_session(scene.store)
    failed = ray_job(status="FAILED", message="Job entrypoint command failed with exit code 1", driver_exit_code=1)
    scene.sessions.have_polled(SESSION, "/api/jobs/", [failed])
    report = (await ask(scene.app, f"/s/{SESSION}/api/keeper/v1/jobs/live/report")).body
    before = a_job("before", status="FAILED", headline=headline(report["headline"]["fingerprint"]))
    assert "Seen before" not in (await ask(scene.app, f"/s/{SESSION}/job/live")).text
    at = STARTED_AT - HOUR
    await put_summary(scene, session(7), [before], at)

    async def seen() -> str:
        """The list of sessions is a few seconds old, and a page does not wait for it for long."""
        text = (await ask(scene.app, f"/s/{SESSION}/job/live")).text
        return text if "Seen before in 1 other job" in text else ""

    page = await eventually(seen)
    assert re.findall(r'href="([^"]*)">train / before<', page) == [f"/s/{session(7)}/job/before"]
    assert f'href="/failures/{report["headline"]["fingerprint"]}">This failure in all clusters<' in page
