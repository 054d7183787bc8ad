"""What web pages of other sites, slow clients and odd requests get: nothing of anybody else's."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
import pytest
import zstandard
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bed.waiting import PATIENCE_SECONDS
from history.hostile.attacked_server import attacked_server, put_ended_session
from raykeeper.history.http import listener
from raykeeper.history.http.access.static_token import COOKIE, COOKIE_SECONDS
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import CatalogKey, PolledKey, SessionId
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.conditions import eventually, until
from support.history_scene import (
    HEAD_ID,
    SESSION,
    STARTED_AT,
    PackBuilder,
    a_scene,
    local_store,
    put_end,
    put_session,
    session_url,
)
from support.serving_history import serving

TOKEN = "correct-horse-battery"
TAIL = f"{session_url()}/api/jobs/train-1/logs/tail"
OTHER = SessionId("team-a", "odd", "session_2026-11-15_21-00-00_000000_9")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://history.evil.example"]
)
async def test_a_page_of_another_site_may_not_follow_a_log(origin: str, tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    async with serving(scene.app) as url, aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(f"{url}{TAIL}", headers={"Origin": origin})
        assert refused.value.status == 403


async def test_own_pages_and_programs_may_follow_a_log(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    await put_end(scene.store)
    job = {"type": "SUBMISSION", "job_id": "01000000", "submission_id": "train-1", "status": "SUCCEEDED"}
    scene.sessions.have_polled(SESSION, "/api/jobs/", [job | {"driver_node_id": HEAD_ID}])
    builder = PackBuilder(scene.store)
    builder.add("job-driver-train-1.log", b"step 1\n")
    await builder.put()
    async with serving(scene.app) as url, aiohttp.ClientSession() as http:
        for headers in ({}, {"Origin": url}):
            async with http.ws_connect(f"{url}{TAIL}", headers=headers) as socket:
                assert "step 1" in (await socket.receive()).data


async def test_no_answer_can_be_loaded_as_a_script(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    builder = PackBuilder(scene.store)
    builder.add("raylet.out", b"alert(1)\n")
    await builder.put()
    logs = f"{session_url()}/api/v0/logs"
    for path in (f"{logs}/file?node_id={HEAD_ID}&filename=raylet.out", f"{logs}?node_id={HEAD_ID}", "/clusters", "/no"):
        assert (await ask(scene.app, path)).headers["x-content-type-options"] == "nosniff", path


async def test_a_head_that_does_not_end_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.3)
    async with serving(a_scene(tmp_path).app) as url:
        host, port = url.removeprefix("http://").split(":")
        for sent in (b"", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: "):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await reader.read() == b""
            writer.close()


async def test_a_second_request_whose_head_does_not_end_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.3)
    async with serving(a_scene(tmp_path).app) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /livez HTTP/1.1\r\nX-Slow: ")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reader.read() == b""
        writer.close()


async def test_quiet_connections_make_room_for_those_who_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "connections_limit", lambda: 8)
    async with serving(a_scene(tmp_path).app) as url, aiohttp.ClientSession() as http:
        host, port = url.removeprefix("http://").split(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(30)]
        for _, writer in slow:
            writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        async with http.get(f"{url}/livez") as answer:
            assert answer.status == 200
        await until(lambda: sum(reader.at_eof() for reader, _ in slow) >= 20)
        for _, writer in slow:
            writer.close()


def ask_and_never_read(url: str, path: str, headers: str = "", window: int = 4096) -> socket.socket:
    """A client with a small window, so that next to nothing of the answer lies in the kernel."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    client.connect((host, int(port)))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode())
    return client


WEBSOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
LOG_BYTES = 48 << 20
JOB_LOG, WHOLE_LOG = "job-driver-train-1.log", "worker.out"


async def put_long_logs(store: ObjectStore, line: bytes) -> None:
    """A session with a long log, and one in a single frame, as large as a collector writes it."""
    await put_ended_session(store)
    builder = PackBuilder(store)
    for offset in range(0, LOG_BYTES, 4 << 20):
        builder.add(JOB_LOG, (line * ((4 << 20) // len(line) + 1))[: 4 << 20], offset=offset)
    builder.add(WHOLE_LOG, (line * ((4 << 20) // len(line) + 1))[: 4 << 20], is_whole=True)
    await builder.put()
    job = {"type": "SUBMISSION", "job_id": "01000000", "submission_id": "train-1", "status": "SUCCEEDED"}
    body = msgspec.json.encode([job | {"driver_node_id": HEAD_ID}])
    answer = msgspec.json.encode({"status": 200, "body": msgspec.Raw(body)})
    await store.put(PolledKey(SESSION, "/api/jobs/", 10**12).key, zstandard.ZstdCompressor().compress(answer))


async def read_slowly(http: aiohttp.ClientSession, url: str, began: asyncio.Event) -> int:
    """A megabyte in half a second; how much came."""
    received = 0
    async with http.get(url) as answer:
        async for piece in answer.content.iter_chunked(1 << 20):
            received += len(piece)
            began.set()
            await asyncio.sleep(len(piece) / (2 << 20))
    return received


@pytest.mark.timeout(300)
async def test_five_hundred_who_ask_for_a_long_log_and_never_read_cost_others_nothing(tmp_path: Path) -> None:
    """Each held a frame of the log, what was read ahead, and a copy of both on its way."""
    await put_long_logs(local_store(tmp_path / "store"), b"a line of the log, and one more word\n")
    logs = f"{session_url()}/api/v0/logs"
    named = f"node_id={HEAD_ID}&filename={JOB_LOG}"
    asked = [
        (f"{logs}/file?node_id={HEAD_ID}&filename={WHOLE_LOG}&lines=-1", ""),
        (f"{logs}/stream?node_id={HEAD_ID}&filename={WHOLE_LOG}&lines=-1", ""),
        (f"{logs}/archive", ""),
        (f"{session_url()}/api/jobs/train-1/logs", ""),
        (TAIL, WEBSOCKET),
    ]
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server, AsyncExitStack() as stack:
        download = f"{server.url}{logs}/file?{named}&lines=-1"
        began = asyncio.Event()
        honest = asyncio.create_task(read_slowly(server.http, download, began))
        await asyncio.wait_for(began.wait(), PATIENCE_SECONDS)
        before = server.peak_bytes
        for number in range(500):
            stack.enter_context(ask_and_never_read(server.url, *asked[number % len(asked)]))
            await asyncio.sleep(0)
            if number % 50 == 0:
                assert (await server.get("/livez"))[0] == 200

        async def is_served() -> bool:
            async with server.http.get(download) as late:
                return late.status == 200 and len(await late.read()) == LOG_BYTES

        assert not honest.done()
        await eventually(is_served, seconds=PATIENCE_SECONDS)
        assert await honest == LOG_BYTES, "whoever reads is served to the end"
        print(f"peak {before >> 20} MB before, {server.peak_bytes >> 20} MB behind")
        assert server.peak_bytes - before < 256 << 20, "it was 461 MB"
        assert server.peak_bytes < 1 << 30


async def read_all(reader: socket.socket) -> bytes:
    """What is left, until the other side ends it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        received = b""
        loop = asyncio.get_running_loop()
        reader.setblocking(False)
        try:
            while piece := await loop.sock_recv(reader, 1 << 20):
                received += piece
        except ConnectionResetError:
            pass
        return received


async def a_large_answer(request: Request) -> Response:
    return Response(b"x" * (20 << 20))


async def test_an_answer_of_which_nothing_is_taken_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was made at once, and also if the server has closed the connection meanwhile."""
    monkeypatch.setattr(listener, "UNREAD_SECONDS", 0.3)
    async with serving(Starlette(routes=[Route("/", a_large_answer)])) as url:
        for headers in ("", "Connection: close\r\n"):
            with ask_and_never_read(url, "/", headers) as client:
                await asyncio.sleep(1.5)
                assert len(await read_all(client)) < 20 << 20


async def test_a_slow_reader_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "UNREAD_SECONDS", 2.0)
    async with serving(Starlette(routes=[Route("/", a_large_answer)])) as url:
        with ask_and_never_read(url, "/", "Connection: close\r\n", window=1 << 16) as client:
            client.setblocking(False)
            first = b""
            for _ in range(20):
                first += await asyncio.get_running_loop().sock_recv(client, 100_000)
                await asyncio.sleep(0.2)
            assert len(first + await read_all(client)) > 20 << 20


async def test_answers_that_nobody_reads_are_cut_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "UNREAD_LIMIT_BYTES", 50 << 20)
    async with serving(Starlette(routes=[Route("/", a_large_answer)])) as url, AsyncExitStack() as stack:
        clients = []
        for _ in range(5):
            clients.append(stack.enter_context(ask_and_never_read(url, "/", "Connection: close\r\n")))
            await asyncio.sleep(0.3)
        received = [len(await read_all(client)) for client in clients]
        assert [length > 20 << 20 for length in received] == [False] * 3 + [True] * 2, "the oldest are cut"


async def test_a_head_of_any_length_is_not_kept(tmp_path: Path) -> None:
    async with serving(a_scene(tmp_path).app) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /livez HTTP/1.1\r\n" + b"X-Long: y\r\n" * 20_000)
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                answer = await reader.read()
            except ConnectionResetError:
                answer = b""
        assert not answer.startswith(b"HTTP/1.1 200")
        writer.close()


async def test_one_catalog_entry_with_an_impossible_time_costs_the_others_nothing(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    await put_session(scene.store, OTHER)
    key = CatalogKey(STARTED_AT.date(), OTHER, "start").key
    for time_text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T00:00:00Z"):
        text = (await scene.store.get(key)).replace(b"2026-11-15T20:00:00Z", time_text.encode())
        await scene.store.put(key, text)
        fresh = a_scene(tmp_path)
        for path in ("/sessions", "/clusters", "/jobs", "/api/keeper/v1/sessions"):
            answer = await ask(fresh.app, path)
            assert answer.status == 200, path
            assert SESSION.session in answer.text or path == "/jobs"
        await put_session(scene.store, OTHER)


@pytest.mark.parametrize(
    "path",
    [
        "/sessions?until=9999-12-31",
        "/sessions?since=0001-01-01",
        "/jobs?since=0001-01-01T00:00:00%2B23:59",
        "/api/keeper/v1/sessions?since=0001-01-01T00:00:00%2B23:59",
        "/api/keeper/v1/search?text=x&until=9999-12-31T23:59:59-23:59",
        "/api/keeper/v1/jobs?until=9999-12-31T23:59:59-23:59",
    ],
)
async def test_a_time_at_the_end_of_the_calendar_is_refused_by_name(path: str, tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    answer = await ask(scene.app, path)
    assert answer.status == 400, answer.text
    assert "since" in answer.text or "until" in answer.text


async def logged_in(scene_folder: Path, **headers: str) -> str:
    scene = a_scene(scene_folder, access=AccessSettings("token", TOKEN))
    answer = await ask(scene.app, "/login", method="POST", body=f"token={TOKEN}".encode(), headers=headers)
    return answer.headers["set-cookie"]


async def test_the_cookie_is_secure_behind_a_proxy_that_ends_tls(tmp_path: Path) -> None:
    assert "Secure" in await logged_in(tmp_path, **{"X-Forwarded-Proto": "https"})
    assert "Secure" not in await logged_in(tmp_path)


async def test_a_cookie_ends_on_the_server_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = a_scene(tmp_path, access=AccessSettings("token", TOKEN))
    cookie = (await logged_in(tmp_path)).split(";")[0].removeprefix(f"{COOKIE}=")

    async def status(value: str) -> int:
        return (await ask(scene.app, "/clusters", headers={"Cookie": f"{COOKIE}={value}"})).status

    assert await status(cookie) == 200
    ends_at, _, signature = cookie.partition("-")
    for forged in (f"{int(ends_at) + 1}-{signature}", f"{'9' * 30}-{signature}", f"²-{signature}", signature, "-"):
        assert await status(forged) == 401, forged
    later = time.time() + COOKIE_SECONDS + 1
    monkeypatch.setattr("raykeeper.history.http.access.static_token.time.time", lambda: later)
    assert await status(cookie) == 401
