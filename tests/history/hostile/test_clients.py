"""What web pages of other sites, slow clients and odd requests get: nothing of anybody else's."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp
import pytest

from bed.waiting import PATIENCE_SECONDS
from raykeeper.history.http import listener
from raykeeper.history.http.access.static_token import COOKIE, COOKIE_SECONDS
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import CatalogKey, SessionId
from support.asking import ask
from support.conditions import until
from support.history_scene import HEAD_ID, SESSION, STARTED_AT, PackBuilder, a_scene, put_end, put_session, session_url
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
