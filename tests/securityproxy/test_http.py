"""HTTP through the security proxy: who shows the token is passed on, as it comes, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiohttp import web

from bed.daemons import LOOPBACK
from support.scripted_server import served
from support.security_proxies import TOKEN, Proxy, ProxyProcess, a_proxy, a_proxy_process

SHOWN = {"Authorization": TOKEN}
MIB = 1 << 20


class Backend:
    """An API server that says what it was asked, and does odd things on some paths."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        if request.path == "/websocket":
            return await self._echo(request)
        if request.path == "/stream":
            return await self._stream(request)
        if request.path == "/large":
            return await self._large(request)
        if request.path == "/redirect":
            return web.Response(status=302, headers={"Location": "http://elsewhere.example/"})
        if request.path == "/gzipped":
            return web.Response(body=b"\x1f\x8b not unpacked", headers={"Content-Encoding": "gzip"})
        if request.path == "/count":
            size = 0
            async for piece in request.content.iter_any():
                size += len(piece)
            return web.json_response({"bytes": size})
        seen = {"method": request.method, "path": request.raw_path, "headers": dict(request.headers)}
        body = await request.content.read()
        return web.json_response({**seen, "body": body.decode()}, headers={"Connection": "X-Mine", "X-Mine": "1"})

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await self.released.wait()
        await response.write(b"last")
        return response

    async def _large(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(int(request.query_string)):
            await response.write(bytes(MIB))
        return response

    async def _echo(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"heard {message.data}")
        return socket


@pytest.fixture
async def backend() -> Backend:
    return Backend()


@pytest.fixture
async def port(backend: Backend) -> AsyncIterator[int]:
    async with served(backend.handle) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
async def proxy(port: int) -> AsyncIterator[Proxy]:
    async with a_proxy(port) as proxy:
        yield proxy


@pytest.fixture
async def process(port: int, tmp_path: Path) -> AsyncIterator[ProxyProcess]:
    async with a_proxy_process(tmp_path, port) as proxy:
        yield proxy


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


async def raw(proxy: Proxy, head: str, body: bytes = b"") -> bytes:
    """The bytes of an answer to the bytes of a request."""
    reader, writer = await asyncio.open_connection(LOOPBACK, proxy.http)
    writer.write(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
    try:
        return await asyncio.wait_for(reader.read(65536), 30)
    finally:
        writer.close()


@pytest.mark.parametrize("shown", [TOKEN, f"Bearer {TOKEN}", f"bearer  {TOKEN}", f" {TOKEN} "])
async def test_the_token_opens_bare_and_as_a_bearer_token(
    shown: str, proxy: Proxy, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{proxy.url}/apis/v1/clusters?limit=1", headers={"Authorization": shown}) as answer:
        assert answer.status == 200
        assert (await answer.json())["path"] == "/apis/v1/clusters?limit=1"


async def test_the_token_itself_is_not_passed_on_as_a_bearer_token(
    proxy: Proxy, session: aiohttp.ClientSession
) -> None:
    """V2 passes bearer tokens on to Kubernetes, whose audit log and webhooks would have ours."""
    for spelling in (f"Bearer {TOKEN}", f"bearer  {TOKEN} "):
        async with session.get(f"{proxy.url}/x", headers={"Authorization": spelling}) as answer:
            assert "Authorization" not in (await answer.json())["headers"]


async def test_a_scheme_inside_of_a_path_leads_around_nothing(port: int, backend: Backend) -> None:
    async with a_proxy(port, prefix="/apis/") as proxy:
        for target in ("http://a/apishttp://b/v1/clusters", "/apishttp://b/v1/clusters"):
            await raw(proxy, f"GET {target} HTTP/1.1\nHost: x\nConnection: close")
        await raw(proxy, "GET /x?u=http://foo/bar HTTP/1.1\nHost: x\nConnection: close")
    assert not [path for path in backend.asked if path.startswith("/apis/")]
    assert backend.asked[-1] == "/x?u=http://foo/bar"


WRONG = [
    "",
    "x",
    TOKEN[:-1],
    TOKEN + "x",
    TOKEN.upper(),
    f"Basic {TOKEN}",
    f"Bearer {TOKEN}x",
    f"Bearer Bearer {TOKEN}",
]


@pytest.mark.parametrize("shown", [None, *WRONG])
async def test_nothing_else_opens(
    shown: str | None, proxy: Proxy, backend: Backend, session: aiohttp.ClientSession
) -> None:
    headers = {} if shown is None else {"Authorization": shown}
    before = len(backend.asked)
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        async with session.request(method, f"{proxy.url}/apis/v1/clusters", headers=headers) as answer:
            assert answer.status == 401
            assert await answer.text() == ("" if method == "HEAD" else "Unauthorized\n")
    assert len(backend.asked) == before


PAGE = "https://page.example"
PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


async def test_a_browser_that_asks_whether_a_page_may_call_is_answered_without_the_token_and_nobody_else(
    port: int, backend: Backend, session: aiohttp.ClientSession
) -> None:
    async with a_proxy(port, cors_origin=PAGE) as proxy:
        url = f"{proxy.url}/api/v1/namespaces/a/services/head/proxy/x"
        async with session.options(url, headers=PREFLIGHT) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, PAGE)
            assert answer.headers["Access-Control-Allow-Methods"] == "POST"
            assert answer.headers["Access-Control-Allow-Headers"] == "authorization"
        async with session.options(url, headers={**PREFLIGHT, "Origin": "https://evil.example"}) as answer:
            assert answer.status == 204
            assert not [name for name in answer.headers if name.startswith("Access-Control")]
        for method in ("GET", "POST", "HEAD", "PUT", "TRACE"):
            async with session.request(method, url, headers=PREFLIGHT) as answer:
                assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (401, PAGE)
        async with session.options(url, headers={"Origin": PAGE}) as answer:
            assert answer.status == 401
        assert backend.asked == [], "nothing of it reached the API server"
        async with session.options(url, headers={**PREFLIGHT, **SHOWN}) as answer:
            assert answer.status == 200, "with the token it is for the API server to say"


async def test_no_page_is_answered_unless_somebody_allowed_it(
    proxy: Proxy, backend: Backend, session: aiohttp.ClientSession
) -> None:
    async with session.options(f"{proxy.url}/apis/v1/clusters", headers=PREFLIGHT) as answer:
        assert answer.status == 401
        assert not [name for name in answer.headers if name.startswith("Access-Control")]
    assert backend.asked == []


async def test_a_token_in_the_query_or_a_cookie_or_another_header_is_none(
    proxy: Proxy, session: aiohttp.ClientSession
) -> None:
    tries: list[dict[str, Any]] = [
        {"params": {"authorization": TOKEN, "token": TOKEN}},
        {"headers": {"Cookie": f"authorization={TOKEN}"}},
        {"headers": {"X-Authorization": TOKEN, "Proxy-Authorization": TOKEN, "Grpc-Metadata-Authorization": TOKEN}},
    ]
    for given in tries:
        async with session.get(f"{proxy.url}/apis/v1/clusters", **given) as answer:
            assert answer.status == 401


SPELLINGS = [
    "/apis/v1/clusters",
    "//apis/v1/clusters",
    "/./apis/v1/clusters",
    "/x/../apis/v1/clusters",
    "/%61pis/v1/clusters",
    "/%2e/apis/v1/clusters",
    "/x/%2e%2e/apis/v1/clusters",
    "/x%2f..%2fapis/v1/clusters",
    "/%2Fapis/v1/clusters",
    "/healthz/../apis/v1/clusters",
    "/healthz/%2e%2e/apis/v1/clusters",
    "/public/../apis/v1/clusters?x=/public",
    "http://host/apis/v1/clusters",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_another_spelling_of_a_path_needs_the_token_too(spelling: str, port: int, backend: Backend) -> None:
    """KubeRay's proxy compares the path as it was sent: `//apis` gets in without a token."""
    async with a_proxy(port, prefix="/apis") as proxy:
        before = len(backend.asked)
        answer = await raw(proxy, f"GET {spelling} HTTP/1.1\nHost: x\nConnection: close")
        assert answer.startswith(b"HTTP/1.1 401"), answer
        assert len(backend.asked) == before
        answer = await raw(proxy, f"GET {spelling} HTTP/1.1\nHost: x\nConnection: close\nAuthorization: {TOKEN}")
        assert answer.startswith(b"HTTP/1.1 200"), answer


async def test_paths_without_the_prefix_need_none(port: int, session: aiohttp.ClientSession) -> None:
    async with a_proxy(port, prefix="/apis") as proxy, session.get(f"{proxy.url}/swagger-ui/") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_probes_need_no_token_whatever_the_prefix(
    method: str, proxy: Proxy, session: aiohttp.ClientSession
) -> None:
    async with session.request(method, f"{proxy.url}/healthz") as answer:
        assert answer.status == 200
    async with session.post(f"{proxy.url}/healthz") as answer:
        assert answer.status == 401


SMUGGLED = [
    "POST /x HTTP/1.1\nHost: x\nAuthorization: {token}\nContent-Length: 5\nTransfer-Encoding: chunked",
    "POST /x HTTP/1.1\nHost: x\nAuthorization: {token}\nContent-Length: 5\nContent-Length: 6",
    "GET /x HTTP/1.1\nHost: x\nAuthorization : {token}",
    "GET /x HTTP/1.1\nHost: x\nAuthorization: x\n {token}",
    "GET /x\tHTTP/1.1\nHost: x\nAuthorization: {token}",
]


@pytest.mark.parametrize("head", SMUGGLED)
async def test_requests_that_two_servers_could_read_differently_are_refused(
    head: str, proxy: Proxy, backend: Backend
) -> None:
    before = len(backend.asked)
    answer = await raw(proxy, head.format(token=TOKEN), b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.split(b" ")[1] in (b"400", b"401"), answer
    assert not any("smuggled" in path for path in backend.asked[before:])


async def test_a_request_is_passed_on_as_it_is(proxy: Proxy, session: aiohttp.ClientSession) -> None:
    headers = {**SHOWN, "X-Mine": "a", "Connection": "X-Hop", "X-Hop": "dropped", "X-Forwarded-For": "1.2.3.4"}
    async with session.put(f"{proxy.url}/a%2Fb?c=%20", headers=headers, data=b"body") as answer:
        seen = await answer.json()
        assert answer.headers.get("X-Mine") is None, "a header about the connection"
    assert (seen["method"], seen["path"], seen["body"]) == ("PUT", "/a%2Fb?c=%20", "body")
    assert seen["headers"]["Authorization"] == TOKEN, "as KubeRay's proxy does"
    assert seen["headers"]["X-Forwarded-Host"] == f"{LOOPBACK}:{proxy.http}"
    assert seen["headers"]["X-Forwarded-For"] == f"1.2.3.4, {LOOPBACK}"
    assert "X-Hop" not in seen["headers"]


async def test_answers_are_passed_on_as_they_are(proxy: Proxy, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{proxy.url}/redirect", headers=SHOWN, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "http://elsewhere.example/")
    async with session.get(f"{proxy.url}/gzipped", headers=SHOWN) as answer:
        assert await answer.read() == b"\x1f\x8b not unpacked"
    async with session.head(f"{proxy.url}/x", headers=SHOWN) as answer:
        assert int(answer.headers["Content-Length"]) > 0
        assert await answer.read() == b""


async def test_an_answer_arrives_while_it_is_made(
    proxy: Proxy, backend: Backend, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{proxy.url}/stream", headers=SHOWN) as answer:
        assert await answer.content.readany() == b"first"
        backend.released.set()
        assert await answer.content.readany() == b"last"


async def test_large_bodies_pass_both_ways_in_little_memory(
    process: ProxyProcess, session: aiohttp.ClientSession
) -> None:
    memory = psutil.Process(process.running.pid).memory_info

    async def pieces(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield bytes(MIB)

    async def both(size: int) -> None:
        async with session.get(f"{process.url}/large?{size}", headers=SHOWN) as answer:
            assert sum([len(piece) async for piece in answer.content.iter_any()]) == size * MIB
        async with session.post(f"{process.url}/count", headers=SHOWN, data=pieces(size)) as answer:
            assert (await answer.json())["bytes"] == size * MIB

    await both(8)
    before = memory().rss
    await both(128)
    assert memory().rss - before < 32 * MIB


async def test_a_slow_reader_holds_the_sender_back(process: ProxyProcess) -> None:
    memory = psutil.Process(process.running.pid).memory_info
    before = memory().rss
    reader, writer = await asyncio.open_connection(LOOPBACK, process.http, limit=1024)
    writer.write(f"GET /large?200 HTTP/1.1\r\nHost: x\r\nAuthorization: {TOKEN}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(2)  # long enough for 200 MB, if anybody took them
    assert memory().rss - before < 32 * MIB
    writer.close()


async def test_websockets_pass(proxy: Proxy, session: aiohttp.ClientSession) -> None:
    async with session.ws_connect(f"{proxy.url}/websocket", headers=SHOWN, max_msg_size=0) as socket:
        await socket.send_str("one")
        assert await socket.receive_str() == "heard one"
        long = "x" * (2 * MIB)
        await socket.send_str(long)
        assert await socket.receive_str() == f"heard {long}"
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        await session.ws_connect(f"{proxy.url}/websocket")
    assert refusal.value.status == 401


async def test_without_an_api_server_it_says_so(session: aiohttp.ClientSession) -> None:
    async with a_proxy(1) as proxy, session.get(f"{proxy.url}/x", headers=SHOWN) as answer:
        assert (answer.status, await answer.text()) == (502, "Bad Gateway\n")


async def test_the_log_has_no_token(process: ProxyProcess, session: aiohttp.ClientSession) -> None:
    for shown in (TOKEN, f"Bearer {TOKEN}", "wrong-and-secret"):
        async with session.get(f"{process.url}/path?token={TOKEN}", headers={"Authorization": shown}):
            pass
    assert '"path":"/path"' in process.output
    assert TOKEN not in process.output
    assert "wrong-and-secret" not in process.output


async def test_a_token_file_is_read_again_when_it_changes(
    port: int, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    file = tmp_path / "token"
    file.write_text("the-first-token-of-all\n")

    async def status(proxy: Proxy, token: str) -> int:
        async with session.get(f"{proxy.url}/x", headers={"Authorization": token}) as answer:
            return answer.status

    async with a_proxy_process(tmp_path, port, SECURITY_TOKEN_FILE=str(file)) as proxy:
        assert await status(proxy, "the-first-token-of-all") == 200
        assert await status(proxy, TOKEN) == 401, "the variable does not count beside a file"
        file.write_text("the-second-token-of-all\n")
        assert await status(proxy, "the-second-token-of-all") == 200
        assert await status(proxy, "the-first-token-of-all") == 401
        file.unlink()
        assert await status(proxy, "the-second-token-of-all") == 200, "the last one goes on"
        file.write_text("")
        assert await status(proxy, "") == 401


async def test_requests_under_way_are_answered_before_it_ends(
    process: ProxyProcess, backend: Backend, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{process.url}/stream", headers=SHOWN) as answer:
        assert await answer.content.readany() == b"first"
        process.running.terminate()
        await asyncio.sleep(0)
        backend.released.set()
        assert await answer.content.readany() == b"last"
    assert await asyncio.to_thread(process.running.wait, 60) == 0
