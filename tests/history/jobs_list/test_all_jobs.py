"""The list of all jobs: over the page, over the JSON API, from summaries and from what heads said last."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.jobs_list import find
from raykeeper.history.query.history import History
from raykeeper.layout.keys import CatalogKey, PolledKey, SessionId
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import PolledAnswer, encode_record
from raykeeper.layout.summaries import FailureSummary, HeadlineSummary, JobSummary, SessionSummary
from support.asking import ask
from support.history_scene import SESSION, STARTED_AT, Scene, a_scene, put_beat, put_session

JOBS = f"{PREFIX}/jobs"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


def session(number: int) -> SessionId:
    return SessionId("team-a", "train", f"session_{number:03d}")


async def put_summary(
    scene: Scene, id_: SessionId, jobs: list[JobSummary], started_at: datetime = STARTED_AT, left_out: int = 0
) -> None:
    """A session that is over and was read to its end."""
    await put_session(scene.store, id_, started_at=started_at, ended_at=started_at + timedelta(hours=1))
    summary = SessionSummary(version=1, as_of=started_at, jobs=tuple(jobs), left_out=left_out)
    await scene.store.put(CatalogKey(started_at.date(), id_, "summary").key, encode_record(summary))


async def put_last_word(scene: Scene, id_: SessionId, jobs: list[dict[str, Any]]) -> None:
    """What the head's dashboard said of its jobs."""
    body = msgspec.Raw(msgspec.json.encode(jobs))
    answer = PolledAnswer(path="/api/jobs/", polled_at=STARTED_AT + timedelta(minutes=30), status=200, body=body)
    key = PolledKey(id_, "/api/jobs/", int(answer.polled_at.timestamp() * 1000)).key
    await scene.store.put(key, encode_polled(answer))


def a_job(name: str = "nightly", **more: Any) -> JobSummary:
    facts: dict[str, Any] = {"submission_id": name, "status": "SUCCEEDED", "started_at": STARTED_AT, **more}
    return JobSummary(**facts)


def ray_job(**more: Any) -> dict[str, Any]:
    started_ms = int(STARTED_AT.timestamp() * 1000)
    return {
        "submission_id": "live",
        "job_id": "01000000",
        "status": "RUNNING",
        "entrypoint": "python x.py",
        "start_time": started_ms,
    } | more


async def test_of_sessions_with_very_many_jobs_only_those_of_a_page_are_held(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, take_in = list[int](), find._take_in

    async def counting(history: History, entries: Any, wanted: Any, tally: Any) -> None:
        await take_in(history, entries, wanted, tally)
        held.append(len(tally.jobs))

    monkeypatch.setattr(find, "_take_in", counting)
    for number in range(4):
        jobs = [a_job(f"j{number}-{one:03d}", started_at=STARTED_AT + timedelta(seconds=one)) for one in range(300)]
        await put_summary(scene, session(number), jobs)
    seen, path = list[str](), f"{JOBS}?limit=100"
    while path:
        answer = (await ask(scene.app, path)).body
        seen += [job["submission_id"] for job in answer["jobs"]]
        path = f"{JOBS}?limit=100&after={quote(answer['next'])}" if answer.get("next") else ""
    assert len(seen) == len(set(seen)) == 1200
    assert max(held) <= 101


async def test_a_job_is_told_with_its_session_and_why_it_failed(scene: Scene) -> None:
    failed = a_job(
        job_id="02000000",
        status="FAILED",
        ended_at=STARTED_AT + timedelta(minutes=2),
        entrypoint="python main.py",
        metadata={"owner": "me"},
        failure="step raised ZeroDivisionError: division by zero",
        outcome="failed",
        headline=HeadlineSummary(text="ZeroDivisionError: division by zero", what="task step", where="main.py:7"),
        failures=(FailureSummary(fingerprint="f1", title="ZeroDivisionError", rule="raised_exception"),),
        tasks={"FAILED": 1, "FINISHED": 9},
    )
    await put_summary(scene, SESSION, [failed])
    answered = (await ask(scene.app, JOBS)).body
    assert answered == {
        "jobs": [
            {
                "namespace": "team-a",
                "cluster": "train",
                "session": SESSION.session,
                "job_id": "02000000",
                "submission_id": "nightly",
                "status": "FAILED",
                "started_at": "2026-11-15T20:00:00Z",
                "ended_at": "2026-11-15T20:02:00Z",
                "entrypoint": "python main.py",
                "metadata": {"owner": "me"},
                "outcome": "failed",
                "failure": "step raised ZeroDivisionError: division by zero",
                "is_doubtful": False,
                "is_provisional": False,
                "headline": {"text": "ZeroDivisionError: division by zero", "what": "task step", "where": "main.py:7"},
                "failures": [{"fingerprint": "f1", "title": "ZeroDivisionError", "rule": "raised_exception"}],
                "tasks": {"FAILED": 1, "FINISHED": 9},
                "report": f"/s/team-a/train/{SESSION.session}/report/nightly",
            }
        ],
        "next": None,
        "unread": 0,
        "left_out": 0,
        "unreadable": 0,
    }
    page = (await ask(scene.app, "/jobs")).text
    for words in (
        "nightly",
        "2\u00a0min",
        "10 · 1 failed",
        'title="python main.py">main.py</a>',
        "owner=me",
        ">ZeroDivisionError: division",
        "task step · main.py:7",
    ):
        assert words in page


async def test_jobs_of_all_sessions_are_paged_newest_first(scene: Scene) -> None:
    for number in range(6):
        jobs = [
            a_job(f"{number}-{part}", started_at=STARTED_AT + timedelta(minutes=number + 7 * part)) for part in range(3)
        ]
        await put_summary(scene, session(number), jobs, STARTED_AT + timedelta(minutes=number))
    starts, after = list[str](), ""
    while True:
        answered = (await ask(scene.app, f"{JOBS}?limit=4&after={quote(after)}")).body
        starts += [job["started_at"] for job in answered["jobs"]]
        if (after := answered["next"]) is None:
            break
    assert len(starts) == 18
    assert starts == sorted(starts, reverse=True)


async def test_sessions_that_ended_before_a_full_page_are_not_opened(scene: Scene) -> None:
    for number in range(100):
        await put_summary(scene, session(number), [a_job(started_at=None)], STARTED_AT + timedelta(hours=2 * number))
    await ask(scene.app, f"{JOBS}?limit=5")
    assert len(scene.history.catalog.summaries._known) <= 64  # the first handful; each of the others ended long before


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("status=FAILED", ["broken"]),
        ("text=DIVISION+by", ["broken"]),
        ("text=owner%3Dme", ["mine"]),
        ("cluster=serve", ["served"]),
        ("namespace=team-a&text=train", ["mine", "broken"]),
        ("text=nothing", []),
    ],
)
async def test_jobs_are_narrowed(scene: Scene, query: str, names: list[str]) -> None:
    broken = a_job("broken", status="FAILED", failure="division by zero")
    mine = a_job("mine", metadata={"owner": "me"}, started_at=STARTED_AT + timedelta(minutes=1))
    await put_summary(scene, SESSION, [mine, broken])
    await put_summary(scene, SessionId("team-b", "serve", "session_1"), [a_job("served")])
    answered = (await ask(scene.app, f"{JOBS}?{query}")).body
    assert [job["submission_id"] for job in answered["jobs"]] == names


async def test_a_running_session_tells_its_jobs_by_its_heads_last_word(scene: Scene) -> None:
    await put_session(scene.store)
    await put_beat(scene.store)
    await put_last_word(scene, SESSION, [ray_job()])
    [job] = (await ask(scene.app, JOBS)).body["jobs"]
    assert (job["submission_id"], job["status"], job["ended_at"]) == ("live", "RUNNING", None)


async def test_a_job_that_ran_when_its_cluster_crashed_has_failed(scene: Scene) -> None:
    await put_session(scene.store)
    await put_last_word(scene, SESSION, [ray_job()])
    [job] = (await ask(scene.app, JOBS)).body["jobs"]
    assert (job["status"], job["failure"], job["ended_at"]) == ("FAILED", "Cluster ended", "2026-11-15T20:30:00Z")


async def test_sessions_of_which_nothing_is_known_are_counted(scene: Scene) -> None:
    await put_session(scene.store, ended_at=STARTED_AT)
    answered = (await ask(scene.app, JOBS)).body
    assert (answered["jobs"], answered["unread"]) == ([], 1)
    assert "1 session not read yet" in (await ask(scene.app, "/jobs")).text


async def test_what_a_summary_could_not_hold_is_counted(scene: Scene) -> None:
    await put_summary(scene, SESSION, [a_job()], left_out=7)
    assert (await ask(scene.app, JOBS)).body["left_out"] == 7
    assert "7 older jobs" in (await ask(scene.app, "/jobs")).text


async def test_a_damaged_summary_is_no_reason_to_fail(scene: Scene) -> None:
    await put_summary(scene, SESSION, [a_job()])
    await scene.store.put(CatalogKey(STARTED_AT.date(), SESSION, "summary").key, b"{")
    await put_last_word(scene, SESSION, [ray_job(status="SUCCEEDED")])
    assert [job["submission_id"] for job in (await ask(scene.app, JOBS)).body["jobs"]] == ["live"]


async def test_secrets_that_users_wrote_are_masked(scene: Scene) -> None:
    told = a_job(
        entrypoint="python main.py --password=hunter2",
        metadata={"api_token": "s3cr3t", "note": "https://me:hunter2@example.com"},
        failure="cannot log in with password=hunter2",
        status="FAILED",
    )
    await put_summary(scene, SESSION, [told])
    for path in (JOBS, "/jobs"):
        shown = (await ask(scene.app, path)).text
        assert "nightly" in shown
        assert not re.search("hunter2|s3cr3t", shown)


async def test_jobs_of_one_session_are_told_too(scene: Scene) -> None:
    await put_session(scene.store)
    scene.sessions.have_polled(SESSION, "/api/jobs/", [ray_job(), ray_job(submission_id="other", job_id="02000000")])
    jobs = f"{PREFIX}/sessions/team-a/train/latest/jobs"
    assert [job["submission_id"] for job in (await ask(scene.app, jobs)).body["jobs"]] == ["other", "live"]
    assert (await ask(scene.app, f"{jobs}/01000000")).body["submission_id"] == "live"
    assert (await ask(scene.app, f"{jobs}/nope")).status == 404


async def test_without_any_job_the_page_says_when_there_will_be_one(scene: Scene) -> None:
    assert "There are no jobs yet" in (await ask(scene.app, "/jobs")).text
    assert "There is no such job" in (await ask(scene.app, "/jobs?text=x")).text


@pytest.mark.parametrize(
    "secret",
    [
        {"entrypoint": "python main.py --password hunter2 --port 1"},
        {"failure": "ValueError: https://me:hunter2@example.com is down"},
        {"metadata": {"db_password": "my hunter2 is long"}},
        {"metadata": {"note": "HF_TOKEN=hunter2"}},
    ],
)
async def test_a_filter_does_not_tell_what_is_masked(scene: Scene, secret: dict[str, Any]) -> None:
    await put_summary(scene, SESSION, [a_job(status="FAILED", **secret)])

    async def names(text: str) -> list[str]:
        return [job["submission_id"] for job in (await ask(scene.app, f"{JOBS}?text={quote(text)}")).body["jobs"]]

    assert await names("nightly") == ["nightly"]
    assert await names("redacted") == ["nightly"]
    for guess in ("hunter2", "hun", "hunter2 nightly"):
        assert await names(guess) == []
