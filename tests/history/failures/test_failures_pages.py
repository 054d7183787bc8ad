"""The pages of kinds of failure, the JSON beside them, and what people say about one."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from raykeeper.history.failures import index
from raykeeper.history.failures.notes import NOTES_OF_KIND, read_notes, write_note
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.failure_notes import NOTE_CHARS, NOTES_PREFIX, note_key, parse_note_key
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.summaries import FailureSummary, JobSummary, SessionSummary
from raykeeper.storage.errors import StoreRefused, StoreUnavailable
from support.asking import Answered, ask
from support.clocks import ManualClock
from support.history_scene import STARTED_AT, Scene, a_scene, put_session

FAILURES = f"{PREFIX}/failures"
LOCAL = {"Host": "localhost"}


async def get(scene: Scene, path: str) -> Answered:
    return await ask(scene.app, path, headers=LOCAL)


async def put_run(scene: Scene, number: int, *failures: FailureSummary, cluster: str = "train") -> SessionId:
    """A session of one job, an hour after the one before."""
    at = STARTED_AT + timedelta(hours=number)
    session = SessionId("team-a", cluster, f"session_{number}")
    await put_session(scene.store, session, started_at=at, ended_at=at + timedelta(minutes=30))
    job = JobSummary(
        submission_id=f"job-{number}",
        status="FAILED" if failures else "SUCCEEDED",
        outcome="failed" if failures else "ok",
        entrypoint="python main.py",
        started_at=at,
        failures=failures,
    )
    summary = SessionSummary(version=4, as_of=at, jobs=(job,))
    await scene.store.put(CatalogKey(at.date(), session, "summary").key, encode_record(summary))
    return session


def a_failure(fingerprint: str = "f1", title: str = "KeyError: 'lr'", **more: Any) -> FailureSummary:
    return FailureSummary(fingerprint=fingerprint, title=title, rule="raised_exception", where="main.py:7", **more)


async def test_a_kind_is_told_once_however_many_sessions_had_it(scene: Scene) -> None:
    await put_run(scene, 0, a_failure(what="task step"))
    await put_run(scene, 1, a_failure(what="task step", count=3), a_failure("f2", "OSError: no"), cluster="serve")
    answer = (await get(scene, FAILURES)).body
    assert (answer["found"], answer["sessions"], answer["is_complete"]) == (2, 2, True)
    told = next(one for one in answer["failures"] if one["fingerprint"] == "f1")
    assert (told["title"], told["state"], told["runs"], told["count"]) == ("KeyError: 'lr'", "new", 2, 4)
    assert told["clusters"] == ["team-a/serve", "team-a/train"]
    assert told["latest"]["report"] == "/s/team-a/serve/session_1/report/job-1"
    assert told["days"] == [0] * 13 + [2]
    page = (await get(scene, "/failures")).text
    assert '<a href="/failures/f1">KeyError: &#x27;lr&#x27;</a>' in page
    assert "task step · main.py:7 · raised exception" in page
    assert '<a href="/s/team-a/serve/session_1/report/job-1">latest report</a>' in page
    assert 'aria-label="Runs that had it in the last 14 days: 2, today 2"' in page
    assert ">new</span>" in page


async def test_no_session_is_opened_for_it(scene: Scene) -> None:
    await put_run(scene, 0, a_failure())
    await get(scene, FAILURES)
    assert scene.sessions.opened == {}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"f1", "f2"}),
        ("state=gone", {"f1"}),
        ("state=new", {"f2"}),
        ("state=muted", set()),
        ("text=KEYERROR", {"f1"}),
        ("text=main.py%3A7", {"f1", "f2"}),
        ("cluster=serve", {"f2"}),
        ("namespace=team-b", set()),
    ],
)
async def test_kinds_are_narrowed(scene: Scene, query: str, found: set[str]) -> None:
    await put_run(scene, 0, a_failure())
    await put_run(scene, 1, a_failure("f2", "OSError: no"), cluster="serve")
    assert {one["fingerprint"] for one in (await get(scene, f"{FAILURES}?{query}")).body["failures"]} == found
    page = (await get(scene, f"/failures?{query}")).text
    assert set(re.findall(r'<a href="/failures/(\w+)">', page)) == found
    assert ("There is no such failure" in page) == (not found)


async def test_kinds_are_paged(scene: Scene) -> None:
    await put_run(scene, 0, *(a_failure(f"f{number}", f"E{number}") for number in range(5)))
    assert (await get(scene, FAILURES)).body["found"] == 5  # which waits for as long as a look takes
    page = (await get(scene, "/failures?limit=2&start=2")).text
    assert len(re.findall(r'<a href="/failures/f\d">', page)) == 2
    assert 'href="/failures?limit=2&amp;start=4"' in page
    assert 'href="/failures?limit=2"' in page


async def test_a_store_without_failures_says_so(scene: Scene) -> None:
    await put_run(scene, 0)
    assert (await get(scene, FAILURES)).body["found"] == 0
    assert "Nothing failed in 1 session" in (await get(scene, "/failures")).text


async def test_a_look_holds_so_much_and_says_that_older_sessions_are_not_in_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_TOLD", 20)
    for number in range(5):
        await put_run(scene, number, *(a_failure(f"f{number}-{one}") for one in range(10)))
    answer = (await get(scene, FAILURES)).body
    assert (answer["found"], answer["sessions"], answer["is_complete"]) == (20, 2, False)
    assert "The 2 newest sessions were looked through" in (await get(scene, "/failures")).text


async def test_one_kind_has_a_page_with_its_last_runs(scene: Scene) -> None:
    for number in range(3):
        await put_run(scene, number, a_failure())
    answer = (await get(scene, f"{FAILURES}/f1")).body
    assert [run["job"] for run in answer["runs"]] == ["job-2", "job-1", "job-0"]
    page = (await get(scene, "/failures/f1")).text
    assert "<h1>KeyError: &#x27;lr&#x27;</h1>" in page
    assert page.count('">Report</a>') == 3
    for path in (f"{FAILURES}/nope", "/failures/nope"):
        assert (await get(scene, path)).status == 404


async def say(scene: Scene, text: str, *, muted: bool = False, fingerprint: str = "f1", **headers: str) -> Answered:
    form = urlencode({"text": text, **({"muted": "true"} if muted else {})}).encode()
    sent = {**LOCAL, "Content-Type": "application/x-www-form-urlencoded", **headers}
    return await ask(scene.app, f"/failures/{fingerprint}/note", method="POST", headers=sent, body=form)


async def test_what_is_said_is_shown_to_everybody_and_the_last_word_counts(scene: Scene, clock: ManualClock) -> None:
    await put_run(scene, 0, a_failure())
    assert '<form action="/failures/f1/note"' in (await get(scene, "/failures/f1")).text
    said = await say(scene, "look at <b>ticket 7</b>")
    assert (said.status, said.headers["location"]) == (303, "/failures/f1")
    clock.advance(60)
    await say(scene, "solved by ticket 8")
    page = (await get(scene, "/failures/f1")).text
    assert "solved by ticket 8</textarea>" in page
    clock.advance(60)
    [told] = (await get(scene, FAILURES)).body["failures"]
    assert told["note"]["text"] == "solved by ticket 8"
    assert "solved by ticket 8" in (await get(scene, "/failures")).text
    assert len([stat async for stat in scene.store.list(NOTES_PREFIX)]) == 2, "nothing is written over"


async def test_a_muted_kind_is_left_out_until_it_is_asked_for(scene: Scene, clock: ManualClock) -> None:
    await put_run(scene, 0, a_failure(), a_failure("f2", "OSError: no"))
    await say(scene, "", muted=True)
    clock.advance(60)
    assert [one["fingerprint"] for one in (await get(scene, FAILURES)).body["failures"]] == ["f2"]
    assert [one["fingerprint"] for one in (await get(scene, f"{FAILURES}?state=muted")).body["failures"]] == ["f1"]
    await say(scene, "")
    clock.advance(60)
    assert (await get(scene, FAILURES)).body["found"] == 2


async def test_secrets_in_a_note_are_not_even_stored(scene: Scene) -> None:
    await put_run(scene, 0, a_failure(title="cannot log in with password=hunter2"))
    await say(scene, "try password=hunter2")
    [key] = [stat.key async for stat in scene.store.list(NOTES_PREFIX)]
    assert b"hunter2" not in await scene.store.get(key)
    for path in ("/failures", "/failures/f1", FAILURES, f"{FAILURES}/f1", f"{FAILURES}?text=hunter2"):
        assert "hunter2" not in (await get(scene, path)).text.replace("?text=hunter2", "")
    assert (await get(scene, f"{FAILURES}?text=hunter2")).body["found"] == 0, "a filter does not tell it either"


async def test_notes_have_bounds(scene: Scene, clock: ManualClock) -> None:
    await put_run(scene, 0, a_failure())
    assert (await say(scene, "x" * (NOTE_CHARS + 1))).status == 400
    assert (await say(scene, "x", fingerprint="nope")).status == 404, "only what failed is talked about"
    for _ in range(NOTES_OF_KIND):
        await write_note(scene.history, "f1", "x", is_muted=False)
    refused = await say(scene, "one more")
    assert refused.status == 400
    assert f"{NOTES_OF_KIND} notes already" in refused.text


@pytest.mark.parametrize(
    "body",
    [b"", b"muted=true", urlencode({"text": "\N{SNOWMAN}" * NOTE_CHARS, "more": "x" * 20_000}).encode()],
    ids=len,
)
async def test_a_form_without_a_note_leaves_what_was_said(scene: Scene, clock: ManualClock, body: bytes) -> None:
    """One that is too long, or that did not come in time, is read as nothing."""
    await put_run(scene, 0, a_failure())
    await say(scene, "look at ticket 7")
    clock.advance(60)
    sent = {**LOCAL, "Content-Type": "application/x-www-form-urlencoded"}
    refused = await ask(scene.app, "/failures/f1/note", method="POST", headers=sent, body=body)
    assert (refused.status, "no note in this form" in refused.text) == (400, True)
    assert "look at ticket 7</textarea>" in (await get(scene, "/failures/f1")).text
    clock.advance(60)
    assert (await say(scene, "")).status == 303, "an empty note takes it back"
    assert "look at ticket 7" not in (await get(scene, "/failures/f1")).text


async def test_another_site_cannot_have_its_visitors_write(scene: Scene) -> None:
    await put_run(scene, 0, a_failure())
    for origin in ("https://evil.example", "null", "http://["):
        assert (await say(scene, "x", Origin=origin)).status == 403
    assert (await say(scene, "x", Origin="http://localhost")).status == 303


async def test_where_anybody_could_write_notes_are_off_and_it_is_said(tmp_path: Path, clock: ManualClock) -> None:
    scene = a_scene(tmp_path, clock=clock, access=AccessSettings("none"))
    await put_run(scene, 0, a_failure())
    page = (await get(scene, "/failures/f1")).text
    assert "Notes are off: anybody who reaches this server could write them" in page
    assert "<textarea" not in page
    assert (await say(scene, "x")).status == 403


async def test_where_the_store_may_only_be_read_notes_are_off_and_it_is_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_run(scene, 0, a_failure())

    async def refuse(key: str, data: bytes) -> None:
        raise StoreRefused("store", key, f"{len(data)} bytes are not wanted", "ask for rights")

    monkeypatch.setattr(scene.store, "put", refuse)
    page = (await get(scene, "/failures/f1")).text
    assert "Notes are off: this server may only read its store" in page
    assert (await say(scene, "x")).status == 403
    assert [stat async for stat in scene.store.list(NOTES_PREFIX)] == []


async def test_a_store_that_was_away_for_a_moment_takes_notes_again(
    scene: Scene, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_run(scene, 0, a_failure())

    async def fail(key: str, data: bytes) -> None:
        raise StoreUnavailable("store", key, f"no answer to {len(data)} bytes")

    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "put", fail)
        assert "or the store does not answer" in (await get(scene, "/failures/f1")).text
        assert (await say(scene, "x")).status == 403
    clock.advance(10)
    assert "<textarea" in (await get(scene, "/failures/f1")).text
    assert (await say(scene, "x")).status == 303


async def test_objects_that_are_no_notes_are_passed_over(scene: Scene, clock: ManualClock) -> None:
    await write_note(scene.history, "f1", "x", is_muted=False)
    await scene.store.put(f"{NOTES_PREFIX}f2/odd", b"{}")
    await scene.store.put(note_key("f3", 1, "00000000"), b"{")
    await scene.store.put(note_key("f4", 1, "00000000"), b" " * 100_000)
    assert set(await read_notes(scene.history)) == {"f1"}


def test_the_key_of_a_note_tells_what_it_is_about() -> None:
    key = note_key("a/b c", 1_794_772_800_000_000_000, "0011aabb")
    assert parse_note_key(key) == "a/b c"
    assert parse_note_key(f"{key}x") is None
    assert note_key("f", 2, "00000000") > note_key("f", 1, "ffffffff")


async def test_whoever_has_the_token_may_write_and_nobody_else(tmp_path: Path) -> None:
    guarded = a_scene(tmp_path, access=AccessSettings("token", "t0ken"))
    await put_run(guarded, 0, a_failure())
    assert (await say(guarded, "x")).status == 401
    assert (await say(guarded, "x", Authorization="Bearer t0ken")).status == 303
