"""Sessions over the JSON API."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.layout.keys import CatalogKey, SessionId
from support.asking import ask
from support.history_scene import SESSION, STARTED_AT, Scene, a_scene, put_beat, put_session, session_url

SESSIONS = f"{PREFIX}/sessions"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


async def test_a_session_is_told_with_its_state_owner_and_path(scene: Scene) -> None:
    await put_session(scene.store, owner=("RayJob", "nightly"))
    await put_beat(scene.store)
    expected = {
        "namespace": "team-a",
        "cluster": "train",
        "session": SESSION.session,
        "state": "running",
        "started_at": "2026-11-15T20:00:00Z",
        "ended_at": None,
        "is_doubtful": False,
        "owner_kind": "RayJob",
        "owner_name": "nightly",
        "ray_version": "2.60.0",
        "outcome": "running",
        "headline": None,
        "jobs": None,
        "failed_jobs": 0,
        "is_held": False,
        "path": f"{session_url()}/",
    }
    listed = await ask(scene.app, SESSIONS)
    assert listed.body == {"sessions": [expected], "next": None, "is_cut": False, "unreadable": 0}
    for name in (SESSION.session, "latest"):
        assert (await ask(scene.app, f"{SESSIONS}/team-a/train/{name}")).body == expected


async def test_pages_follow_each_other_without_gap_or_repeat(scene: Scene) -> None:
    for number in range(7):
        session = SessionId("team-a", "train", f"session_{number}")
        await put_session(scene.store, session, started_at=STARTED_AT + timedelta(minutes=number), ended_at=STARTED_AT)
    found, after = list[str](), ""
    while True:
        page = (await ask(scene.app, f"{SESSIONS}?limit=3&after={quote(after)}")).body
        found += [session["session"] for session in page["sessions"]]
        if (after := page["next"]) is None:
            break
    assert found == [f"session_{number}" for number in reversed(range(7))]


async def test_sessions_of_one_state_are_found_behind_many_of_another(scene: Scene) -> None:
    for number in range(8):
        session = SessionId("team-a", "train", f"session_{number}")
        started_at = STARTED_AT + timedelta(minutes=number)
        await put_session(scene.store, session, started_at=started_at, ended_at=started_at if number else None)
    answered = (await ask(scene.app, f"{SESSIONS}?state=unknown&limit=2")).body
    assert [session["session"] for session in answered["sessions"]] == ["session_0"]
    assert answered["next"] is None


async def test_what_cannot_be_read_is_counted(scene: Scene) -> None:
    await scene.store.put(CatalogKey(STARTED_AT.date(), SESSION, "start").key, b"{")
    assert (await ask(scene.app, SESSIONS)).body["unreadable"] == 1


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "since=2026-11-15", "state=lost", "order=", "after=x", "page=2"]
)
async def test_what_the_list_does_not_know_is_refused(scene: Scene, query: str) -> None:
    answered = await ask(scene.app, f"{SESSIONS}?{query}")
    assert (answered.status, list(answered.body)) == (400, ["error"])


async def test_a_session_that_is_not_there_is_not_found(scene: Scene) -> None:
    answered = await ask(scene.app, f"{SESSIONS}/team-a/train/nope")
    assert (answered.status, answered.body) == (404, {"error": "there is no session team-a/train/nope"})
