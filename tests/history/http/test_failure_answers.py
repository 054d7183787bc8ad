"""What a request is told when something fails, and that a fresh replica answers as an old one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.errors import NoSession, failure_response
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.layout.keys import SessionId
from raykeeper.storage.errors import ObjectMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.store import ObjectStat
from support.asking import ask
from support.history_scene import HEAD_ID, SESSION, PackBuilder, Scene, a_scene, put_session, session_url


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SessionMissing(SESSION), 404),
        (NoSession("no session is chosen"), 400),
        (ObjectMissing("s3://b", "k"), 404),
        (StoreUnavailable("s3://b", "k", "no answer"), 503),
        (Unavailable("queries", "500 are waiting", retry_after=3.2), 503),
        (StoreRefused("s3://b", "k", "denied", "give rights"), 502),
        (RaykeeperError("anything else"), 500),
        (InvalidQuery("bad filter"), 400),
        (Unanswerable("no reason"), 500),
    ],
)
def test_errors_become_answers(error: Exception, status: int) -> None:
    response = failure_response(error)
    assert response
    assert response.status_code == status


def test_who_is_told_to_wait_is_told_how_long() -> None:
    for error, seconds in (
        (StoreUnavailable("s3://b", "k", "no answer"), "5"),
        (Unavailable("queries", "many", retry_after=3.2), "4"),
    ):
        response = failure_response(error)
        assert response
        assert response.headers["Retry-After"] == seconds


def test_a_bug_is_no_answer() -> None:
    assert failure_response(KeyError("x")) is None


class BrokenStart:
    """Sessions that cannot be opened because of a bug."""

    async def open(self, _: SessionId) -> None:
        raise KeyError("a bug")


async def test_a_bug_is_counted_and_told_as_rays_server_tells_its_own(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    scene.sessions.open = BrokenStart().open  # type: ignore[method-assign, assignment]  # this is the bug
    answered = await ask(scene.app, f"{session_url()}/api/version")
    assert (answered.status, answered.text) == (500, "500 Internal Server Error\n\nServer got itself in trouble")
    assert "raykeeper_history_bugs_total 1.0" in (await ask(scene.app, "/metrics")).text


async def test_a_store_that_is_down_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = a_scene(tmp_path)

    async def down(prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        raise StoreUnavailable("s3://b", prefix, "no answer")
        yield ObjectStat("", 0, None)  # makes it a generator

    await put_session(scene.store)
    monkeypatch.setattr(scene.store, "list", down)
    for path in ("/", "/clusters", f"{session_url()}/api/v0/logs?node_id={HEAD_ID}"):
        answered = await ask(scene.app, path)
        assert answered.status == 503
        assert "could not be reached" in answered.text


async def test_every_replica_answers_alike_at_once(tmp_path: Path) -> None:
    first = a_scene(tmp_path)
    await put_session(first.store)
    packs = PackBuilder(first.store)
    packs.add("raylet.out", b"one\n")
    await packs.put()
    paths = ("/clusters", f"{session_url()}/api/v0/logs?node_id={HEAD_ID}", f"{session_url()}/api/version")
    answers = [(await ask(first.app, path)).content for path in paths]
    for _ in range(2):
        replica: Scene = a_scene(tmp_path)
        assert [(await ask(replica.app, path)).content for path in paths] == answers
