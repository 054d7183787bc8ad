"""Logs over a real connection: streams, tails, archives, and what bad requests get."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import tarfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path

import aiohttp
import pytest

from bed.waiting import PATIENCE_SECONDS
from raykeeper.layout.keys import SessionId, node_record_key
from raykeeper.layout.records import SessionRecord
from support.asking import ask
from support.conditions import eventually
from support.history_scene import (
    HEAD_ID,
    SESSION,
    STARTED_AT,
    WORKER_ID,
    PackBuilder,
    Scene,
    a_scene,
    put_beat,
    put_end,
    put_session,
    session_url,
)
from support.serving_history import serving

JOBS: list[dict[str, str | None]] = [
    {
        "type": "SUBMISSION",
        "job_id": "02000000",
        "submission_id": "train-1",
        "status": "SUCCEEDED",
        "driver_node_id": HEAD_ID,
    },
    {
        "type": "SUBMISSION",
        "job_id": "03000000",
        "submission_id": "train-2",
        "status": "RUNNING",
        "driver_node_id": HEAD_ID,
    },
    {"type": "SUBMISSION", "job_id": None, "submission_id": "bad-env", "status": "FAILED", "driver_node_id": None},
    {"type": "SUBMISSION", "job_id": None, "submission_id": "cut-off", "status": "PENDING", "driver_node_id": None},
    {"type": "DRIVER", "job_id": "04000000", "submission_id": None, "status": "SUCCEEDED", "driver_node_id": None},
]
FILE = f"{session_url()}/api/v0/logs/file?node_id={HEAD_ID}"
STREAM = f"{session_url()}/api/v0/logs/stream?node_id={HEAD_ID}"


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    scene.sessions.have_polled(SESSION, "/api/jobs/", JOBS)
    return scene


@pytest.fixture
def packs(scene: Scene) -> PackBuilder:
    return PackBuilder(scene.store)


@pytest.fixture
async def http(scene: Scene) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(scene.app) as url, aiohttp.ClientSession(url) as http:
        yield http


async def test_a_log_is_downloaded_under_the_name_that_was_asked_for(scene: Scene, packs: PackBuilder) -> None:
    packs.add("raylet.out", b"one\ntwo\n")
    await packs.put()
    answered = await ask(scene.app, f"{FILE}&filename=raylet.out&download_filename=my.txt")
    assert answered.headers["content-disposition"] == 'attachment; filename="my.txt"'
    assert answered.headers["content-type"].startswith("text/plain")
    assert answered.text == "one\ntwo\n"


async def test_the_name_of_a_download_cannot_add_headers(scene: Scene, packs: PackBuilder) -> None:
    packs.add("raylet.out", b"x")
    await packs.put()
    name = "a%22%0d%0aSet-Cookie:%20b=c%3b%c3%bc.txt"
    answered = await ask(scene.app, f"{FILE}&filename=raylet.out&download_filename={name}")
    assert "set-cookie" not in answered.headers
    assert answered.headers["content-disposition"].startswith(
        'attachment; filename="aSet-Cookie: b=c;.txt"; filename*='
    )


@pytest.mark.parametrize(
    ("lines", "text"),
    [("1", "c\n"), ("2", "b\nc\n"), ("-1", "a\nb\nc\n"), ("0", "a\nb\nc\n"), ("99", "a\nb\nc\n"), ("-7", "")],
)
async def test_the_last_lines_are_sent(scene: Scene, packs: PackBuilder, lines: str, text: str) -> None:
    packs.add("a.log", b"a\nb\nc\n")
    await packs.put()
    assert (await ask(scene.app, f"{FILE}&filename=a.log&lines={lines}")).text == text


OUTSIDE = [
    "../session.json",
    "../../../../etc/passwd",
    "/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2fetc%2fpasswd",
    "logs/../../secret",
    "a%00b",
    f"/tmp/ray/{SESSION.session}/logs/../../../etc/passwd",
    "....//....//etc/passwd",
]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "param", ["filename", "actor_id", "task_id", "submission_id", "node_id", "node_ip", "pid", "suffix"]
)
async def test_no_parameter_leads_out_of_a_sessions_logs(
    scene: Scene, packs: PackBuilder, param: str, name: str
) -> None:
    other = PackBuilder(scene.store, session=SessionId("team-b", "secret", "session_1"))
    other.add("secret", b"of another team")
    await other.put()
    packs.add("raylet.out", b"x")
    await packs.put()
    given = {"node_id": HEAD_ID, "filename": "raylet.out"} if param in ("node_id", "suffix") else {"node_id": HEAD_ID}
    query = "&".join(f"{key}={value}" for key, value in (given | {param: name}).items())
    answered = await ask(scene.app, f"{session_url()}/api/v0/logs/file?{query}")
    assert answered.status == 500
    assert "another team" not in answered.text
    assert "root:" not in answered.text


@pytest.mark.parametrize("glob", ["../*", "/etc/*", "..%2F..%2F*", "a/../../*", "", "**x"])
async def test_no_pattern_leads_out_of_a_sessions_logs(scene: Scene, packs: PackBuilder, glob: str) -> None:
    packs.add("raylet.out", b"x")
    await packs.put()
    answered = await ask(scene.app, f"{session_url()}/api/v0/logs?node_id={HEAD_ID}&glob={glob}")
    assert (answered.status, answered.text) == (500, "500 Internal Server Error\n\nServer got itself in trouble")


@pytest.mark.parametrize(
    "query",
    ["lines=x", "timeout=x", "attempt_number=x", "pid=x", "suffix=log", "node_ip=1.2.3.4", "interval=1", "lines=1e3"],
)
async def test_requests_on_which_ray_fails_fail_here_too(scene: Scene, packs: PackBuilder, query: str) -> None:
    packs.add("raylet.out", b"x")
    await packs.put()
    answered = await ask(scene.app, f"{FILE}&filename=raylet.out&{query}")
    assert (answered.status, answered.text) == (500, "500 Internal Server Error\n\nServer got itself in trouble")


async def test_sql_in_an_id_is_an_id_nobody_has(scene: Scene, packs: PackBuilder) -> None:
    packs.add("raylet.out", b"x")
    await packs.put()
    for param in ("task_id", "node_ip", "submission_id"):
        given = (
            {param: "' OR 1=1 --"} | ({} if param == "node_ip" else {"node_id": HEAD_ID}) | {"filename": "raylet.out"}
        )
        query = "&".join(f"{key}={value.replace(' ', '+')}" for key, value in given.items())
        answered = await ask(scene.app, f"{session_url()}/api/v0/logs/file?{query}")
        assert answered.status == 500
        assert answered.text.startswith("Could not find")


async def test_a_damaged_pack_is_said_in_the_list(scene: Scene, packs: PackBuilder) -> None:
    packs.add("lost.log", b"x")
    key = await packs.put()
    packs.add("raylet.out", b"x")
    await packs.put()
    await scene.store.put(key, b"torn")
    answered = await ask(scene.app, f"{session_url()}/api/v0/logs?node_id={HEAD_ID}")
    assert answered.body["data"]["result"] == {"raylet": ["raylet.out"]}
    assert key in answered.body["msg"]


async def test_a_log_of_a_running_session_is_followed_until_it_ends(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    packs.add("worker.out", b"one\n")
    await packs.put()
    async with http.get(f"{STREAM}&filename=worker.out&interval=0.5") as answer:
        assert await answer.content.readline() == b"one\n"
        packs.add("worker.out", b"two\n", offset=4)
        await packs.put()
        assert await answer.content.readline() == b"two\n"
        packs.add("worker.out", b"last\n", offset=8)
        await packs.put()
        await put_end(scene.store)
        assert await asyncio.wait_for(answer.content.read(), PATIENCE_SECONDS) == b"last\n"


async def test_asking_for_the_headers_of_a_stream_does_not_wait_for_it(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    packs.add("worker.out", b"one\n")
    await packs.put()
    async with asyncio.timeout(PATIENCE_SECONDS), http.head(f"{STREAM}&filename=worker.out") as answer:
        assert (answer.status, answer.headers["Content-Disposition"]) == (200, 'attachment; filename="file.txt"')


async def test_a_log_of_a_dead_session_is_sent_and_that_is_all(packs: PackBuilder, http: aiohttp.ClientSession) -> None:
    packs.add("worker.out", b"one\ntwo\n")
    await packs.put()
    async with http.get(f"{STREAM}&filename=worker.out&lines=1") as answer:
        assert await asyncio.wait_for(answer.text(), PATIENCE_SECONDS) == "two\n"


async def test_a_jobs_log_is_one_json_text_whatever_is_in_it(packs: PackBuilder, http: aiohttp.ClientSession) -> None:
    text = 'tab\t "quoted" \\ back \x00 nul é 漢 🎉\n'.encode()
    cut = text.index("漢".encode()) + 1
    packs.add("job-driver-train-1.log", text[:cut])
    packs.add("job-driver-train-1.log", text[cut:] + b"\xff bad\n", offset=cut)
    await packs.put()
    for id_ in ("train-1", "02000000"):
        async with http.get(f"{session_url()}/api/jobs/{id_}/logs") as answer:
            assert (await answer.json())["logs"] == text.decode() + "\ufffd bad\n"


@pytest.mark.parametrize(("id_", "text"), [("cut-off", "it began\n"), ("bad-env", "")])
async def test_a_job_at_work_whose_head_died_before_it_named_a_node_has_its_log_on_the_head(
    scene: Scene, packs: PackBuilder, id_: str, text: str
) -> None:
    opened = scene.sessions.opened[SESSION]
    record = SessionRecord(**asdict(SESSION), started_at=STARTED_AT, recorded_at=STARTED_AT, head_node_id=HEAD_ID)
    scene.sessions.opened[SESSION] = replace(opened, record=record)
    packs.add(f"job-driver-{id_}.log", b"it began\n")
    await packs.put()
    assert (await ask(scene.app, f"{session_url()}/api/jobs/{id_}/logs")).body == {"logs": text}


@pytest.mark.parametrize(
    ("id_", "status", "text"),
    [
        ("nope", 404, "Job nope does not exist"),
        ("04000000", 400, "Can only get logs of submission type jobs"),
        ("bad-env", 200, '{"logs": ""}'),
        ("train-1", 200, '{"logs": ""}'),
    ],
)
async def test_jobs_without_a_log_answer_as_ray_does(scene: Scene, id_: str, status: int, text: str) -> None:
    answered = await ask(scene.app, f"{session_url()}/api/jobs/{id_}/logs")
    assert (answered.status, answered.text) == (status, text)


async def test_the_log_of_a_job_that_ended_is_tailed_and_closed(
    packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    packs.add("job-driver-train-1.log", b"hello\n")
    await packs.put()
    for session in (SESSION.session, "latest"):
        async with http.ws_connect(f"/s/team-a/train/{session}/api/jobs/train-1/logs/tail") as socket:
            assert [message.data async for message in socket] == ["hello\n"]
        assert socket.close_code == 1000


async def test_the_log_of_a_running_job_is_tailed_until_the_job_ends(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    packs.add("job-driver-train-2.log", b"one\n")
    await packs.put()
    async with http.ws_connect(f"{session_url()}/api/jobs/train-2/logs/tail") as socket:
        assert await socket.receive_str(timeout=PATIENCE_SECONDS) == "one\n"
        packs.add("job-driver-train-2.log", b"two\n", offset=4)
        await packs.put()
        assert await socket.receive_str(timeout=PATIENCE_SECONDS) == "two\n"
        scene.sessions.have_polled(SESSION, "/api/jobs/", [JOBS[1] | {"status": "SUCCEEDED"}])
        assert (await socket.receive(timeout=PATIENCE_SECONDS)).type is aiohttp.WSMsgType.CLOSE


@pytest.mark.parametrize(("id_", "status"), [("nope", 404), ("04000000", 400)])
async def test_a_tail_that_ray_refuses_is_refused(http: aiohttp.ClientSession, id_: str, status: int) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(f"{session_url()}/api/jobs/{id_}/logs/tail")
    assert refused.value.status == status


async def test_a_tail_of_a_session_that_is_not_there_is_refused(http: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect("/s/a/b/c/api/jobs/x/logs/tail")
    assert refused.value.status == 404


async def test_all_logs_come_as_one_archive(scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession) -> None:
    packs.add("raylet.out", b"head\n" * 1000)
    packs.add("empty.log", b"")
    packs.add("torn.log", b"start")
    packs.lose("torn.log", 5, 95, "deleted before it was read")
    packs.add("torn.log", b"end", offset=100)
    packs.add("../../evil.log", b"outside")
    await packs.put()
    worker = PackBuilder(scene.store, node_id=WORKER_ID)
    worker.add("serve/replica.log", b"worker\n")
    await worker.put()
    async with http.get(f"{session_url()}/api/v0/logs/archive") as answer:
        assert "train-session_" in answer.headers["Content-Disposition"]
        files = unpacked(await answer.read())
    assert files.pop("MISSING.txt").decode().splitlines() == [
        f"'{HEAD_ID}/../../evil.log' was left out: it would unpack outside of its folder",
        f"{HEAD_ID}/torn.log: bytes 5 to 100: deleted before it was read",
    ]
    assert files == {
        f"{HEAD_ID}/raylet.out": b"head\n" * 1000,
        f"{HEAD_ID}/empty.log": b"",
        f"{HEAD_ID}/torn.log": b"start" + b"\0" * 95 + b"end",
        f"{WORKER_ID}/serve/replica.log": b"worker\n",
    }
    async with http.get(f"{session_url()}/api/v0/logs/archive?node_id={WORKER_ID}") as answer:
        assert list(unpacked(await answer.read())) == [f"{WORKER_ID}/serve/replica.log"]
    async with http.get(f"{session_url()}/api/v0/logs/archive?node_id=..%2F..") as answer:
        assert answer.status == 404


async def test_a_client_that_goes_away_leaves_nothing_running(
    scene: Scene, packs: PackBuilder, http: aiohttp.ClientSession
) -> None:
    await put_beat(scene.store)
    packs.add("worker.out", b"one\n")
    await packs.put()
    before = asyncio.all_tasks()
    async with http.get(f"{STREAM}&filename=worker.out") as answer:
        await answer.content.readline()
        answer.close()

    async def is_quiet() -> bool:
        return not {task for task in asyncio.all_tasks() - before if "receive" not in repr(task)} - {
            asyncio.current_task()
        }

    assert await eventually(is_quiet)


async def test_a_session_that_fell_silent_is_not_followed(scene: Scene, packs: PackBuilder, tmp_path: Path) -> None:
    await put_beat(scene.store)
    then = time.time() - 100
    os.utime(tmp_path / "store" / node_record_key(SESSION, HEAD_ID), (then, then))
    packs.add("worker.out", b"one\n")
    await packs.put()
    answered = await asyncio.wait_for(ask(scene.app, f"{STREAM}&filename=worker.out"), PATIENCE_SECONDS)
    assert answered.text == "one\n"


def unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive))) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]  # all are files
