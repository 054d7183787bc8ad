"""The viewer of logs as it is answered: without a script, whatever a log holds, and while it grows."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bed.waiting import PATIENCE_SECONDS
from raykeeper.history.entities.log_files import job_of_file
from raykeeper.history.http.pages import log_tail
from raykeeper.history.logs.stream_slots import NoSlot, StreamSlots
from support.asking import Answered, ask
from support.conditions import eventually
from support.history_scene import (
    HEAD_ID,
    PackBuilder,
    Scene,
    a_scene,
    put_beat,
    put_end,
    put_session,
    session_url,
)
from support.serving_history import serving

LOG = f"{session_url()}/log?node={HEAD_ID}&file=worker.out"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
EVIL = f'<script>alert(1)</script><img src=x onerror=alert(1)>" onclick="x password=hunter2 {TOKEN}'
PAGE_LIMIT_BYTES = 200_000


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    made = a_scene(tmp_path)
    await put_session(made.store)
    return made


@pytest.fixture
def packs(scene: Scene) -> PackBuilder:
    return PackBuilder(scene.store)


async def shown(scene: Scene, packs: PackBuilder, text: bytes, query: str = "") -> Answered:
    packs.add("worker.out", text)
    await packs.put()
    return await ask(scene.app, LOG + query)


def hrefs(page: Answered, words: str) -> list[str]:
    return [html.unescape(href) for href in re.findall(rf'<a href="([^"]*)"[^>]*>{words}</a>', page.text)]


async def test_every_line_has_a_number_that_is_its_address(scene: Scene, packs: PackBuilder) -> None:
    page = await shown(scene, packs, b"one\ntwo\nthree\n", "&line=2")
    assert page.status == 200
    assert '<div class="row here" id="L2"><a href="#L2" class="number" tabindex="-1">2</a>' in page.text
    assert 'id="here">two</span>' in page.text
    assert "Lines 1 to 3, 14 of 14 bytes" in page.text


async def test_levels_and_colours_are_classes_and_never_styles(scene: Scene, packs: PackBuilder) -> None:
    page = await shown(scene, packs, b"\x1b[36mRay\x1b[0m ERROR x\nWARNING y\n\x1b[1;31mred\x1b[0m\n")
    assert '<div class="row error" id="L1">' in page.text
    assert '<div class="row warning" id="L2">' in page.text
    assert '<span class="ansi-cyan">Ray</span> ERROR x' in page.text
    assert '<span class="ansi-bold ansi-red">red</span>' in page.text
    assert "style=" not in page.text
    assert "\x1b" not in page.text


async def test_hostile_lines_and_names_are_text_and_masked(scene: Scene, packs: PackBuilder) -> None:
    name = 'a"><script>x</script>.log'
    packs.add("worker.out", EVIL.encode() + b"\n\x1b[31m" + EVIL.encode() + b"\n")
    packs.add(name, EVIL.encode())
    await packs.put()
    other = f"{session_url()}/log?node={HEAD_ID}&file=a%22%3E%3Cscript%3Ex%3C/script%3E.log"
    for path in (LOG, f"{LOG}&filter=alert", f"{LOG}&filter=%3Cscript%3E", f"{LOG}&error=0", other):
        page = await ask(scene.app, path)
        assert page.status == 200
        assert "<script>" not in page.text
        assert "<img" not in page.text
        assert 'onclick="' not in page.text.replace("&quot;", "")
        assert "hunter2" not in page.text
        assert TOKEN not in page.text


async def test_without_a_script_all_of_a_file_can_be_read(scene: Scene, packs: PackBuilder) -> None:
    page = await shown(scene, packs, b"".join(b"line %d\n" % number for number in range(3000)))
    seen, pages = list[str](), 0
    while True:
        pages += 1
        seen += re.findall(r">(line \d+)</span>", page.text)
        assert len(page.content) < PAGE_LIMIT_BYTES
        later = hrefs(page, "Later")
        if not later:
            break
        page = await ask(scene.app, later[0])
    assert seen == [f"line {number}" for number in range(3000)]
    assert pages > 5
    assert hrefs(page, "Earlier")


async def test_the_first_and_the_next_error_are_links(scene: Scene, packs: PackBuilder) -> None:
    text = b"x\n" * 5000 + b"ERROR first\n" + b"x\n" * 5000 + b"ERROR second\n"
    page = await shown(scene, packs, text)
    first = await ask(scene.app, hrefs(page, "First error")[0])
    at_first = await ask(scene.app, first.headers["location"].partition("#")[0])
    second = await ask(scene.app, hrefs(at_first, "Next error")[0])
    at_second = await ask(scene.app, second.headers["location"].partition("#")[0])
    none = await ask(scene.app, hrefs(at_second, "Next error")[0])
    assert first.headers["location"].endswith("#here")
    assert 'id="here">ERROR first' in at_first.text
    assert 'id="here">ERROR second' in at_second.text
    assert "There is no further error in this log." in none.text


async def test_a_filter_shows_lines_with_links_to_where_they_stand(scene: Scene, packs: PackBuilder) -> None:
    text = b"".join(b"Needle\n" if number == 4321 else b"hay\n" for number in range(1, 9001))
    page = await shown(scene, packs, text, "&filter=needle")
    assert "1 line with “needle” in " in page.text
    [href] = hrefs(page, "4321")
    there = await ask(scene.app, href.partition("#")[0])
    assert href.endswith("line=4321#L4321")
    assert '<div class="row here" id="L4321">' in there.text
    assert "No line holds that." in (await ask(scene.app, f"{LOG}&filter=nothing-holds-this")).text


@pytest.mark.parametrize(
    ("file", "job"),
    [
        (f"worker-{'ab' * 28}-03000000-618.err", "03000000"),
        (f"old/worker-{'ab' * 28}-ffffffff-618.err", ""),
        ("job-driver-nightly.log", "nightly"),
        ("raylet.out", ""),
    ],
)
def test_a_log_leads_back_to_its_job(file: str, job: str) -> None:
    assert job_of_file(file) == job


async def test_a_place_that_is_no_number_is_said(scene: Scene, packs: PackBuilder) -> None:
    for query in ("&line=0", "&line=x", "&at=-1", "&start=1.5", f"&filter={'x' * 201}"):
        assert (await shown(scene, packs, b"x\n", query)).status == 400


@pytest.fixture
async def http(scene: Scene) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(scene.app) as url, aiohttp.ClientSession(url) as client:
        yield client


def follow_path(page: Answered) -> str:
    [path] = re.findall(r'data-follows="([^"]*)"', page.text)
    return html.unescape(path)


async def events_of(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    """Each event by the names of its fields; comments are none."""
    event: dict[str, str] = {}
    async for line in answer.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if not name and event:
            yield event
            event = {}
        elif name:
            event[name] = value


async def test_a_log_is_followed_until_its_session_ends(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    page = await shown(scene, packs, b"one\n")
    async with asyncio.timeout(PATIENCE_SECONDS), http.get(follow_path(page)) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = events_of(answer)
        assert await anext(events) == {"retry": "3000"}
        packs.add("worker.out", b"two <b>\nthree is not who", offset=4)
        await packs.put()
        first = await anext(events)
        assert first["id"] == "12:3"
        assert '<div class="row" id="L2">' in json.loads(first["data"])["rows"]
        assert "two &lt;b&gt;" in json.loads(first["data"])["rows"]
        packs.add("worker.out", b"le\n", offset=28)
        await packs.put()
        second = await anext(events)
        assert "three is not whole" in json.loads(second["data"])["rows"]
        await put_end(scene.store)
        assert (await anext(events))["event"] == "end"
        assert [event async for event in events] == []


async def test_a_connection_that_broke_goes_on_where_it_was(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    page = await shown(scene, packs, b"one\n")
    packs.add("worker.out", b"two\nthree\n", offset=4)
    await packs.put()
    await put_end(scene.store)
    headers = {"Last-Event-ID": "8:3"}
    async with asyncio.timeout(PATIENCE_SECONDS), http.get(follow_path(page), headers=headers) as answer:
        events = [event async for event in events_of(answer)]
    rows = "".join(json.loads(event["data"]).get("rows", "") for event in events if "data" in event)
    assert re.findall(r'id="L(\d+)"', rows) == ["3"]
    assert events[-1]["event"] == "end"


async def test_a_log_of_a_session_that_is_over_is_not_followed(scene: Scene, packs: PackBuilder) -> None:
    await put_end(scene.store)
    assert "data-follows" not in (await shown(scene, packs, b"one\n")).text


async def test_more_followers_than_the_server_has_room_for_are_sent_away(
    scene: Scene, packs: PackBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_beat(scene.store)
    page = await shown(scene, packs, b"one\n")
    monkeypatch.setattr(scene.history.logs, "tails", StreamSlots(0))
    assert (await ask(scene.app, follow_path(page))).status == 503


async def tail_of(http: aiohttp.ClientSession, path: str, last_id: str = "") -> list[dict[str, str]]:
    """All events of a stream that ends."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with asyncio.timeout(PATIENCE_SECONDS), http.get(path, headers=headers) as answer:
        return [event async for event in events_of(answer)]


async def test_who_comes_back_too_late_is_told_how_much_was_left_out(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_beat(scene.store)
    path = follow_path(await shown(scene, packs, b"one\ntwo\nthree\nfour\n"))
    await put_end(scene.store)
    monkeypatch.setattr(log_tail, "BACKLOG_BYTES", 5)
    _, gap, last, end = await tail_of(http, path, "4:2")
    assert "10 bytes came meanwhile" in json.loads(gap["data"])["rows"]
    assert 'class="row gap"' in json.loads(gap["data"])["rows"]
    assert gap["id"] == "14:0"
    assert "four" in json.loads(last["data"])["rows"]
    assert end["event"] == "end"


async def test_a_place_far_behind_the_end_is_the_end(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    path = re.sub(r"start=\d+", f"start={2**62}", follow_path(await shown(scene, packs, b"one\n")))
    async with asyncio.timeout(PATIENCE_SECONDS), http.get(path) as answer:
        events = events_of(answer)
        assert await anext(events) == {"retry": "3000"}
        packs.add("worker.out", b"two\n", offset=4)
        await packs.put()
        assert "two" in json.loads((await anext(events))["data"])["rows"]


async def test_a_stream_that_lived_long_ends_so_that_its_browser_comes_back(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "_LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(log_tail, "_BEAT_SECONDS", 0.01)
    await put_beat(scene.store)
    events = await tail_of(http, follow_path(await shown(scene, packs, b"one\n")))
    assert "end" not in [event.get("event") for event in events]


async def test_a_follower_has_a_slot_before_the_next_one_is_asked(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_beat(scene.store)
    path = follow_path(await shown(scene, packs, b"one\n"))
    slots = StreamSlots(1)
    monkeypatch.setattr(scene.history.logs, "tails", slots)
    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(*(http.get(path) for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [200, 503, 503]
    for answer in answers:
        answer.close()

    async def is_free() -> bool:
        with contextlib.suppress(NoSlot):
            async with slots.slot("another"):
                return True
        return False

    await eventually(is_free)  # who left gave it back


async def test_ids_are_places_in_the_file_also_behind_a_hole(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    path = follow_path(await shown(scene, packs, b"one\n"))
    packs.add("worker.out", b"two\nthree\n", offset=1004)
    await packs.put()
    await put_end(scene.store)
    _, gap, lines, _ = await tail_of(http, path)
    assert 'class="row gap"' in json.loads(gap["data"])["rows"]
    assert "1,000 bytes of this log are missing here" in json.loads(gap["data"])["rows"]
    assert (gap["id"], lines["id"]) == ("1004:2", "1014:4")
    _, again, _ = await tail_of(http, path, "1008:3")
    assert "three" in json.loads(again["data"])["rows"]
