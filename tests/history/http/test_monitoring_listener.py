"""The second listener: Grafana behind our own access with its own login, or our own monitoring where there is none."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from bed.waiting import PATIENCE_SECONDS, wait_until
from raykeeper.errors import Misconfigured
from raykeeper.history.http.app import with_access
from raykeeper.history.http.monitoring import NO_ANSWER, monitoring_app
from raykeeper.history.settings import AccessSettings
from raykeeper.history.sources import read_settings
from support.history_scene import Scene, a_scene, put_session, session_url
from support.serving_history import serving

TOKEN = "t0ken-of-the-test"
STORE = "--store=file:///history"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class FakeGrafana:
    """Speaks as Grafana does over HTTP and websockets, and remembers what it was told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.raw_path, dict(request.headers), body))
        if request.headers.get("Upgrade", "").lower() == "websocket":
            socket = web.WebSocketResponse(protocols=("live",))
            await socket.prepare(request)
            async for message in socket:
                await (socket.send_str if message.type is aiohttp.WSMsgType.TEXT else socket.send_bytes)(message.data)
            return socket
        response = web.Response(text=f"grafana {request.method} {request.raw_path}", status=201 if body else 200)
        response.headers.add("Set-Cookie", "grafana_session=1; Path=/")
        response.headers.add("Set-Cookie", "grafana_session_expiry=2; Path=/")
        return response


@asynccontextmanager
async def grafana() -> AsyncIterator[tuple[FakeGrafana, str]]:
    fake = FakeGrafana()
    runner = web.ServerRunner(web.Server(fake.answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield fake, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def listening(scene: Scene, url: str = "") -> AsyncIterator[str]:
    guard: Any = partial(with_access, access=scene.history.access)
    async with monitoring_app(url, scene.app, guard) as app, serving(app) as address:
        yield address


async def status_of(client: aiohttp.ClientSession, url: str, **given: Any) -> int:
    async with client.get(url, **given) as answer:
        await answer.read()
        return answer.status


@pytest.fixture
def guarded(tmp_path: Path) -> Scene:
    return a_scene(tmp_path, access=AccessSettings("token", TOKEN))


@pytest.fixture
def open_to_all(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


async def test_a_request_reaches_grafana_as_it_is_and_so_does_the_answer(open_to_all: Scene) -> None:
    async with grafana() as (fake, url), listening(open_to_all, url) as address, aiohttp.ClientSession() as client:
        path = "/d/x/a%2Fb?from=1&var-x=a%20b"
        answer = await client.get(f"{address}{path}".replace("%2F", "%252F"), headers={"Cookie": "grafana_session=7"})
        posted = await client.post(f"{address}/api/ds/query", data=b"{}" * 50_000)
        await asyncio.gather(answer.read(), posted.read())
    assert (answer.status, posted.status) == (200, 201)
    assert len(answer.headers.getall("Set-Cookie")) == 2
    assert len(answer.headers.getall("Date")) == 1
    [(method, seen, headers, _), (_, _, _, body)] = fake.requests
    assert (method, seen) == ("GET", "/d/x/a%252Fb?from=1&var-x=a%20b")
    assert headers["Cookie"] == "grafana_session=7"
    assert headers["X-Forwarded-Host"] == address.removeprefix("http://")
    assert len(body) == 100_000


async def test_nothing_that_lets_somebody_in_here_is_shown_to_grafana(guarded: Scene) -> None:
    lies = {"X-WEBAUTH-USER": "admin", "X-Forwarded-For": "10.0.0.1", "X-JWT-Assertion": "x", "X-Real-IP": "1.1.1.1"}
    async with grafana() as (fake, url), listening(guarded, url) as address, aiohttp.ClientSession() as client:
        cookie = {"Cookie": "raykeeper_access=1-2; __Host-raykeeper_session=x; grafana_session=7"}
        assert await status_of(client, f"{address}/api/org", headers={**BEARER, **cookie, **lies}) == 200
    [(_, _, headers, _)] = fake.requests
    told = " ".join(f"{name}: {value}" for name, value in headers.items()).lower()
    for secret in (TOKEN, "raykeeper", "webauth", "10.0.0.1", "x-jwt", "1.1.1.1"):
        assert secret not in told
    assert headers["Cookie"] == "grafana_session=7"


@pytest.mark.parametrize("name", ["Remote-User", "X-Remote-User", "X_WEBAUTH_USER", "X-Auth-Email", "X-Grafana-Id"])
async def test_nobody_says_by_any_header_who_they_are_in_grafana(name: str, guarded: Scene) -> None:
    async with grafana() as (fake, url), listening(guarded, url) as address, aiohttp.ClientSession() as client:
        assert await status_of(client, f"{address}/api/user", headers={**BEARER, name: "admin"}) == 200
    [(_, _, headers, _)] = fake.requests
    assert "admin" not in headers.values()


async def test_clients_choose_neither_grafanas_host_nor_another_one_beside_it(guarded: Scene) -> None:
    async with grafana() as (fake, url), listening(guarded, url) as address, aiohttp.ClientSession() as client:
        own, other = address, "http://admin.internal"
        for host, origin in ((own, own), (other, other), (own, other)):
            said = {**BEARER, "Host": host.removeprefix("http://"), "Origin": origin}
            await (await client.post(f"{address}/api/x", headers=said, data=b"{}")).read()
    assert {headers["Host"] for _, _, headers, _ in fake.requests} == {url.removeprefix("http://")}
    assert [headers["Origin"] for _, _, headers, _ in fake.requests] == [url, url, other]


@pytest.mark.parametrize(
    "path", ["/../admin", "/%2e%2e/admin", "/d/..%2f..%2fadmin", "/d/..\\..\\x", "/d/%252e%252e/x"]
)
async def test_no_path_leads_out_of_grafana(path: str, guarded: Scene) -> None:
    async with grafana() as (fake, url), listening(guarded, f"{url}/grafana") as address:
        host, _, port = address.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        writer.write(head.encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()
    assert fake.requests == []


@pytest.mark.parametrize("path", ["/", "/metrics", "/readz", "/api/health", "/d/x", "/raykeeper-grafana", "//d/x"])
async def test_grafana_is_behind_the_token_on_every_path(path: str, guarded: Scene) -> None:
    async with grafana() as (fake, url), listening(guarded, url) as address, aiohttp.ClientSession() as client:
        assert await status_of(client, f"{address}{path}", allow_redirects=False) == 401
        wrong = {"Authorization": "Bearer wrong-token-of-somebody"}
        assert await status_of(client, f"{address}{path}", headers=wrong) == 403
    assert fake.requests == []


async def test_who_logs_in_here_is_led_back_and_then_meets_grafanas_own_login(guarded: Scene) -> None:
    browser = {"Accept": "text/html"}
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        grafana() as (fake, url),
        listening(guarded, url) as address,
        aiohttp.ClientSession(cookie_jar=jar, headers=browser) as client,
    ):
        asked = await client.get(f"{address}/d/x?from=1")
        assert "Sign in to Raykeeper" in await asked.text()
        form = {"token": TOKEN, "next": asked.url.query["next"]}
        shown = await client.post(f"{address}/login", data=form)
        assert await shown.text() == "grafana GET /d/x?from=1"
        login = await client.post(f"{address}/login", json={"user": "admin", "password": "admin"})
        assert "POST /login" in await login.text()
    assert [seen for _, seen, _, _ in fake.requests] == ["/d/x?from=1", "/login"]
    assert b"admin" in fake.requests[-1][3]


async def test_a_websocket_is_joined_with_grafanas_in_both_directions(guarded: Scene) -> None:
    async with grafana() as (_, url), listening(guarded, url) as address, aiohttp.ClientSession() as client:
        async with client.ws_connect(f"{address}/api/live/ws", headers=BEARER, protocols=("live",)) as socket:
            assert socket.protocol == "live"
            await socket.send_str("hello")
            assert (await socket.receive()).data == "hello"
            await socket.send_bytes(b"\x00\x01")
            assert (await socket.receive()).data == b"\x00\x01"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{address}/api/live/ws")
        assert refused.value.status == 401
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect(f"{address}/api/live/ws", headers=BEARER, origin="http://evil.example.com")


async def test_a_grafana_that_does_not_answer_is_said_and_costs_nothing_else(open_to_all: Scene) -> None:
    async with listening(open_to_all, "http://127.0.0.1:9") as address, aiohttp.ClientSession() as client:
        answer = await client.get(f"{address}/d/x")
        assert (answer.status, NO_ANSWER in await answer.text()) == (502, True)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect(f"{address}/api/live/ws")


async def test_without_grafana_the_curves_of_the_store_are_shown(open_to_all: Scene) -> None:
    await put_session(open_to_all.store)
    async with listening(open_to_all) as address, aiohttp.ClientSession() as client:
        answer = await client.get(f"{address}/")
        text = await answer.text()
        assert answer.url.path == "/monitoring"
        assert f'href="{session_url()}/monitoring"' in text
        curves = await client.get(f"{address}{session_url()}/monitoring")
        assert "No measurements of the machines were recorded." in await curves.text()


async def test_without_grafana_the_same_access_counts(guarded: Scene) -> None:
    async with listening(guarded) as address, aiohttp.ClientSession() as client:
        assert await status_of(client, f"{address}/monitoring") == 401
        assert await status_of(client, f"{address}/monitoring", headers=BEARER) == 200


async def test_a_client_that_goes_away_ends_its_request_to_grafana(open_to_all: Scene) -> None:
    ended = asyncio.Event()

    async def never(request: web.BaseRequest) -> web.StreamResponse:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return web.Response()

    runner = web.ServerRunner(web.Server(never, handler_cancellation=True))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with listening(open_to_all, url) as address, aiohttp.ClientSession() as client:
            with pytest.raises(TimeoutError):
                await client.get(f"{address}/slow", timeout=aiohttp.ClientTimeout(total=0.5))
            async with asyncio.timeout(30):
                await ended.wait()
    finally:
        await runner.cleanup()


def test_both_addresses_and_grafana_are_read() -> None:
    flags = (STORE, "--auth=none", "--monitoring-bind=:3000", "--grafana-url=http://grafana.monitoring:80/")
    settings = read_settings(flags, {})
    assert settings.monitoring_bind == ":3000"
    assert (settings.grafana.url, settings.grafana.port) == ("http://grafana.monitoring:80", 3000)
    assert read_settings((STORE,), {}).monitoring_bind == ""


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--monitoring-bind=:3000",), "--monitoring-bind=':3000' cannot be used: others could read there"),
        (("--monitoring-bind=nowhere",), "--monitoring-bind"),
        (("--grafana-url=http://g",), "it needs --monitoring-bind"),
        (("--monitoring-bind=127.0.0.1:3000", "--grafana-url=grafana:3000"), "use http://host:port"),
        (("--monitoring-bind=127.0.0.1:3000", "--grafana-url=http://u:secret@g"), "--grafana-url='…'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(flags: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_settings((STORE, *flags), {})
    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_command_listens_at_both_addresses_and_ends_with_both(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "raykeeper.cli.main", "history", f"--store=file://{tmp_path}/store"]
    command += [f"--cache-dir={tmp_path}/cache", "--bind=127.0.0.1:0", "--monitoring-bind=127.0.0.1:0"]
    log = tmp_path / "log"
    (tmp_path / "store").mkdir()
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def ports() -> dict[str, int] | None:
        assert server.poll() is None, log.read_text()
        lines = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
        found = {line["msg"]: line["port"] for line in lines if line["msg"].startswith("listening")}
        return found if len(found) == 2 else None

    try:
        found = wait_until("both addresses are open", ports)
        assert found is not None
        for message, path in (("listening", "/"), ("listening for monitoring", "/monitoring")):
            with urllib.request.urlopen(f"http://127.0.0.1:{found[message]}/") as answer:
                assert urlsplit(answer.url).path == path
    finally:
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0
