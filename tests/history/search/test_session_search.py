"""A search in one session, as the JSON API and its page answer it: hits in context, filters, places to go on, gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.search import match
from support.asking import Answered, ask
from support.history_scene import HEAD_ID, SESSION, WORKER_ID, PackBuilder, Scene, a_scene, put_session, session_url
from support.planted_secrets import SECRETS

SEARCH = f"{session_url()}{PREFIX}/search"
TEXT = "\n".join(f"line {number}" for number in range(100)) + "\n"


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    made = a_scene(tmp_path)
    await put_session(made.store)
    return made


async def put(scene: Scene, files: dict[str, str], node_id: str = HEAD_ID) -> str:
    packs = PackBuilder(scene.store, node_id=node_id)
    for path, text in files.items():
        packs.add(path, text.encode())
    return await packs.put()


async def asked(scene: Scene, text: str, **more: object) -> Answered:
    return await ask(scene.app, f"{SEARCH}?{urlencode({'text': text, **more})}")


async def found(scene: Scene, text: str, **more: object) -> dict[str, Any]:
    answered = await asked(scene, text, **more)
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.body
    return body


def hit_lines(body: dict[str, Any]) -> list[str]:
    return [line["text"] for hit in body["hits"] for line in hit["lines"] if line["is_hit"]]


async def test_a_hit_comes_with_the_lines_around_it_and_its_place(scene: Scene) -> None:
    await put(scene, {"worker-1.out": TEXT})
    body = await found(scene, "line 50", context=1)
    [hit] = body["hits"]
    assert [(line["text"], line["is_hit"]) for line in hit["lines"]] == [
        ("line 49", False),
        ("line 50", True),
        ("line 51", False),
    ]
    assert (hit["kind"], hit["title"], hit["node_id"]) == ("log", "worker-1.out", HEAD_ID)
    assert hit["lines"][1]["offset"] == TEXT.index("line 50")
    assert (body["complete"], body["next"], body["unsearched"]) == (True, None, [])
    assert body["scanned_bytes"] == body["total_bytes"] > 0


async def test_lines_around_a_hit_come_from_other_packs_too(scene: Scene) -> None:
    packs = PackBuilder(scene.store)
    for start in range(0, len(TEXT), 25):
        packs.add("worker-1.out", TEXT[start : start + 25].encode(), offset=start)
        await packs.put()
    body = await found(scene, "line 50")
    assert [line["text"] for line in body["hits"][0]["lines"]] == [f"line {number}" for number in range(48, 53)]


async def test_the_link_of_a_hit_leads_to_its_line(scene: Scene) -> None:
    await put(scene, {"old/worker-1.out": TEXT * 1000})
    packs = await found(scene, "line 77", limit=150)
    path, _, fragment = packs["hits"][120]["path"].partition("#")
    page = await ask(scene.app, path)
    assert (page.status, fragment) == (200, "here")
    assert 'class="text" id="here">line 77</span>' in page.text
    before, _, behind = page.text.partition('id="here"')
    assert before.rindex(">line 76<") > before.rindex(">line 75<")
    assert behind.index(">line 78<") < behind.index(">line 79<")
    for words in ("Earlier", "Later", "Download"):
        assert words in page.text


async def test_a_log_that_is_not_there_is_said(scene: Scene) -> None:
    await put(scene, {"worker-1.out": TEXT})
    page = await ask(scene.app, f"{session_url()}/log?node={HEAD_ID}&file=nope&at=0")
    assert page.status == 404
    assert "There is no log nope" in page.text


async def test_pages_of_hits_follow_each_other_without_repeats_or_gaps(scene: Scene) -> None:
    await put(scene, {"worker-1.out": TEXT, "worker-2.out": TEXT}, HEAD_ID)
    await put(scene, {"worker-3.out": TEXT}, WORKER_ID)
    lines, after, pages = list[tuple[str, int]](), "", 0
    while True:
        body = await found(scene, "line", limit=7, context=0, after=after)
        lines += [(hit["title"], hit["lines"][0]["offset"]) for hit in body["hits"]]
        pages += 1
        if body["complete"]:
            break
        after = body["next"]
    assert len(lines) == len(set(lines)) == 300
    assert pages == 43


async def test_a_search_without_time_answers_at_once_and_still_comes_to_its_end(scene: Scene) -> None:
    await put(scene, {"worker-1.out": TEXT}, HEAD_ID)
    await put(scene, {"worker-3.out": TEXT}, WORKER_ID)
    seen, after, rounds = list[str](), "", 0
    while rounds < 20:
        body = await found(scene, "line 50", seconds=0, after=after)
        seen += hit_lines(body)
        rounds += 1
        if body["complete"]:
            break
        after = body["next"]
    assert seen == ["line 50", "line 50"]
    assert rounds > 2


@pytest.mark.parametrize(
    ("more", "titles"),
    [
        ({}, {"worker-a-01000000-1.out", "job-driver-s.log", "events/event_GCS.log", "raylet.out"}),
        ({"file": "*.out"}, {"worker-a-01000000-1.out", "raylet.out"}),
        ({"file": "events/*"}, {"events/event_GCS.log"}),
        ({"kind": "log"}, {"worker-a-01000000-1.out", "job-driver-s.log", "raylet.out"}),
        ({"kind": "event"}, {"events/event_GCS.log"}),
        ({"kind": "error"}, set()),
        ({"node": WORKER_ID[:6]}, {"raylet.out"}),
        ({"job": "s"}, {"job-driver-s.log", "worker-a-01000000-1.out"}),
    ],
    ids=lambda given: "-".join(f"{name}={value}" for name, value in given.items()) if isinstance(given, dict) else "",
)
async def test_filters_leave_what_is_asked_for(scene: Scene, more: dict[str, str], titles: set[str]) -> None:
    names = ("worker-a-01000000-1.out", "job-driver-s.log", "events/event_GCS.log")
    await put(scene, dict.fromkeys(names, "x needle\n"))
    await put(scene, {"raylet.out": "x needle\n"}, WORKER_ID)
    job = {"type": "SUBMISSION", "submission_id": "s", "job_id": "01000000", "status": "FAILED", "end_time": None}
    scene.sessions.have_polled(SESSION, "/api/jobs/", [job])
    body = await found(scene, "needle", **more)
    assert {hit["title"] for hit in body["hits"]} == titles


async def test_the_time_asked_for_is_that_of_reading_a_line(scene: Scene) -> None:
    packs = PackBuilder(scene.store)
    for number in range(3):
        packs.sequence = number * 60_000_000_000  # which the time of reading follows from
        packs.add("worker-1.out", f"needle {number}\n".encode(), offset=9 * number)
        packs.sequence = number
        await packs.put()
    since = "2026-11-15T20:00:30Z"
    assert hit_lines(await found(scene, "needle", since=since)) == ["needle 1", "needle 2"]
    until = "2026-11-15T20:01:30Z"
    assert hit_lines(await found(scene, "needle", since=since, until=until)) == ["needle 1", "needle 2"]
    assert hit_lines(await found(scene, "needle", until="2026-11-15T20:00:00Z")) == ["needle 0"]


async def test_a_damaged_pack_is_said_and_the_rest_is_searched(scene: Scene) -> None:
    packs = PackBuilder(scene.store)
    packs.add("worker-1.out", b"first needle\n")
    damaged = await packs.put()
    packs.add("worker-1.out", b"half a needle", offset=13)
    await packs.put()
    packs.add("worker-1.out", b" goes on\nneedle\n", offset=26)
    await packs.put()
    text = await scene.store.get(damaged)
    await scene.store.put(damaged, bytes([text[0] ^ 255]) + text[1:])
    body = await found(scene, "needle")
    assert hit_lines(body) == ["half a needle goes on", "needle"]
    assert [one["what"] for one in body["unsearched"]] == [damaged]
    page = await ask(scene.app, f"{session_url()}/search?text=needle")
    assert "This could not be searched" in page.text
    assert damaged in page.text


async def test_a_pack_without_an_index_and_bytes_never_stored_are_said(scene: Scene) -> None:
    packs = PackBuilder(scene.store)
    packs.add("worker-1.out", b"needle\n")
    packs.lose("worker-1.out", 7, 100, "the disk was full")
    await packs.put()
    packs.add("worker-1.out", b"needle\n", offset=107)
    broken = await packs.put()
    await scene.store.put(broken, b"nothing")
    body = await found(scene, "needle")
    assert hit_lines(body) == ["needle"]
    assert {one["what"] for one in body["unsearched"]} == {broken, f"logs of node {HEAD_ID}"}


async def test_nobody_guesses_at_a_secret_by_searching_for_it(scene: Scene) -> None:
    token, key = SECRETS["hugging_face"], SECRETS["private_key"]
    secret = f"-----BEGIN RSA PRIVATE KEY-----\n{'A' * 64}\n{key}\n-----END RSA PRIVATE KEY-----\n"
    await put(scene, {"worker-1.out": f"HF_TOKEN={token}\n{secret}the end\n"})
    assert (await found(scene, token[:8]))["hits"] == []
    assert (await found(scene, key[:8]))["hits"] == []
    assert (await found(scene, "hf_[a-z]", regex="true"))["hits"] == []
    around = await found(scene, "the end", context=5)
    assert token not in str(around)
    assert key not in str(around)
    assert "A" * 64 not in str(around)
    assert hit_lines(await found(scene, "HF_TOKEN")) == ["HF_TOKEN=<redacted>"]


async def test_a_line_of_megabytes_is_searched_in_pieces_and_shown_in_part(scene: Scene) -> None:
    packs, line = PackBuilder(scene.store), b"=" * 900_000 + b"needle" + b"=" * 900_000 + b"\nneedle at its end\n"
    for start in range(0, len(line), 200_000):
        packs.add("worker-1.out", line[start : start + 200_000], offset=start)
        await packs.put()
    body = await found(scene, "needle")
    assert len(body["hits"]) == 2
    assert max(len(text) for text in hit_lines(body)) < 500
    assert all("needle" in text for text in hit_lines(body))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"text": ""}, "parameter 'text'"),
        ({"text": "(", "regex": "true"}, "no pattern: missing )"),
        ({"text": "a\nb"}, "parameter 'text'"),
        ({"text": "x", "after": "nonsense"}, "not a place in a search"),
        ({"text": "x", "file": "../x"}, "It must be a relative path"),
        ({"text": "x" * 201}, "parameter 'text'"),
    ],
    ids=["empty", "unbalanced", "two lines", "no place", "outside", "too long"],
)
async def test_what_cannot_be_looked_for_is_refused(scene: Scene, more: dict[str, str], told: str) -> None:
    await put(scene, {"worker-1.out": TEXT})
    answered = await ask(scene.app, f"{SEARCH}?{urlencode(more)}")
    assert (answered.status, told in answered.body["error"]) == (400, True), answered.text
    page = await ask(scene.app, f"{session_url()}/search?{urlencode(more)}")
    assert (page.status, "<form" in page.text) == (400 if more["text"] else 200, True)


async def test_a_pattern_that_would_take_others_for_ever_takes_no_time(scene: Scene) -> None:
    await put(scene, {"worker-1.out": "a" * 5000 + "!\n"})
    body = await found(scene, "(a+)+$", regex="true", seconds=1)
    assert body["hits"] == []
    assert body["complete"]


async def test_a_job_or_session_that_is_not_there_is_said(scene: Scene) -> None:
    assert (await asked(scene, "x", job="nope")).status == 404
    assert (await ask(scene.app, f"/s/team-a/train/session_x{PREFIX}/search?text=x")).status == 404


async def test_the_page_shows_hits_marked_and_a_link_to_go_on(scene: Scene) -> None:
    await put(scene, {"worker-1.out": TEXT + "<b>line</b>\n"})
    page = await ask(scene.app, f"{session_url()}/search?text=line&limit=5&kind=log")
    assert page.status == 200
    assert page.text.count("<mark>") == 5
    assert page.text.count("<pre>") == 1  # neighbours are one passage
    assert "Load more" in page.text
    assert "5 hits so far" in page.text
    last = await ask(scene.app, f"{session_url()}/search?text=%3Cb%3E")
    assert "&lt;b&gt;line&lt;/b&gt;" in last.text
    assert "1 hit here; all was searched." in last.text
    assert "No matches." in (await ask(scene.app, f"{session_url()}/search?text=absent")).text


async def test_a_page_keeps_its_size_whatever_is_asked_for(scene: Scene) -> None:
    await put(scene, {"worker-1.out": ("<needle>" * 100 + "\n") * 500})
    page = await ask(scene.app, f"{session_url()}/search?text=needle&limit=200&context=10")
    assert page.status == 200
    assert page.text.count("<mark>") == 30
    assert len(page.content) < 200_000


def test_lines_longer_than_the_limit_are_cut_where_they_are_found() -> None:
    text = b"x" * match.LINE_BYTES + b"needle\n"
    assert match.PlainMatcher("needle").find(text) == [(match.LINE_BYTES, match.LINE_BYTES + 6)]
    assert match.PatternMatcher("need(le)", ignores_case=False).find(text) == [(match.LINE_BYTES, match.LINE_BYTES + 6)]


async def test_the_page_ignores_case_unless_it_is_told_not_to(scene: Scene) -> None:
    await put(scene, {"worker-1.out": "a needle\n"})
    assert "No matches." not in (await ask(scene.app, f"{session_url()}/search?text=NEEDLE")).text
    told = await ask(scene.app, f"{session_url()}/search?text=NEEDLE&ignore_case=false")
    assert "No matches." in told.text
    assert "checked" in told.text, "the page shows what it was told"
