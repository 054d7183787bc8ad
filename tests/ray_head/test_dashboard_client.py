"""The client of a dashboard, against one that does what real ones do on bad days."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ray_head.scripted_head import ScriptedHead, as_text, chunked, cut_short, scripted, stalled
from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.ray.credentials import NoToken, StaticToken, TokenFile, ray_credentials
from raykeeper.ray.dashboard import Dashboard, Limits
from raykeeper.ray.errors import OversizedAnswer, RayRefused

QUICK = Limits(connect_seconds=1.0, answer_seconds=0.3, body_bytes=100_000)


@pytest.fixture
def head() -> ScriptedHead:
    return ScriptedHead()


@pytest.fixture
async def address(head: ScriptedHead) -> AsyncIterator[str]:
    async with scripted(head) as url:
        yield url


async def test_an_answer_has_its_status_its_bytes_and_its_type(head: ScriptedHead, address: str) -> None:
    head.answer("/x?a=1&b=%2F", as_text(b'{"a": 1}', 418, "application/json"))
    answer = await Dashboard(address).get("/x?a=1&b=%2F")
    assert (answer.status, answer.body, answer.is_json, answer.is_ok) == (418, b'{"a": 1}', True, False)


async def test_a_chunked_answer_comes_whole(head: ScriptedHead, address: str) -> None:
    pieces = [bytes([65 + n]) * 7_001 for n in range(9)]
    head.answer("/x", chunked(*pieces))
    assert (await Dashboard(address).get("/x")).body == b"".join(pieces)


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall there is")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await Dashboard(f"http://127.0.0.1:{port}").get("/x")).body == b"all there is"


async def test_a_path_before_the_address_is_kept(head: ScriptedHead, address: str) -> None:
    head.answer("/some/prefix/x", as_text("here"))
    assert (await Dashboard(f"{address}/some/prefix/").get("/x")).body == b"here"


async def test_a_dashboard_that_is_not_there_is_unavailable(unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match=f"127.0.0.1:{unused_tcp_port}"):
        await Dashboard(f"http://127.0.0.1:{unused_tcp_port}").get("/x")


async def test_a_dashboard_that_stalls_is_unavailable(head: ScriptedHead, address: str) -> None:
    head.answer("/x", stalled)
    with pytest.raises(Unavailable, match="no answer to /x in time"):
        await Dashboard(address, limits=QUICK).get("/x")


async def test_a_stream_that_stalls_is_unavailable(head: ScriptedHead, address: str) -> None:
    head.answer("/x", stalled)
    with pytest.raises(Unavailable, match="no answer to /x in time"):
        [piece async for piece in Dashboard(address, limits=QUICK).stream("/x")]


async def test_an_answer_that_ends_in_the_middle_is_unavailable(head: ScriptedHead, address: str) -> None:
    head.answer("/x", cut_short)
    with pytest.raises(Unavailable, match="middle of the answer"):
        await Dashboard(address).get("/x")


async def test_what_is_not_http_is_unavailable() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="no HTTP"):
            await Dashboard(f"http://127.0.0.1:{port}").get("/x")


async def test_a_body_beyond_the_limit_is_not_kept(head: ScriptedHead, address: str) -> None:
    head.answer("/x", as_text(b"x" * 100_001))
    with pytest.raises(OversizedAnswer, match="/x is larger than 100000 bytes"):
        await Dashboard(address, limits=QUICK).get("/x")


async def test_a_stream_has_no_limit(head: ScriptedHead, address: str) -> None:
    head.answer("/x", chunked(*[b"x" * 50_000] * 5))
    assert sum([len(piece) async for piece in Dashboard(address, limits=QUICK).stream("/x")]) == 250_000


async def test_a_stream_of_an_error_is_unavailable(head: ScriptedHead, address: str) -> None:
    head.answer("/x", as_text("file not found", 500))
    with pytest.raises(Unavailable, match="answered 500"):
        [piece async for piece in Dashboard(address).stream("/x")]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_missing_or_wrong_token_is_a_refusal(head: ScriptedHead, address: str, status: int) -> None:
    head.answer("/x", as_text("no", status))
    with pytest.raises(RayRefused) as refused:
        await Dashboard(address).get("/x")
    assert refused.value.status == status


async def test_a_token_goes_out_in_both_of_rays_headers(head: ScriptedHead, address: str) -> None:
    await Dashboard(address, StaticToken("s3cret")).get("/x")
    assert head.headers[0]["Authorization"] == head.headers[0]["X-Ray-Authorization"] == "Bearer s3cret"


async def test_a_projected_token_is_read_anew_for_every_request(
    head: ScriptedHead, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    dashboard = Dashboard(address, TokenFile(file))
    with pytest.raises(Unavailable, match="Ray token file"):
        await dashboard.get("/x")
    for token in ("first", "renewed"):
        file.write_text(f"{token}\n")
        await dashboard.get("/x")
    assert [headers["Authorization"] for headers in head.headers] == ["Bearer first", "Bearer renewed"]


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines\n", b"\xff\xfe"])
def test_a_file_without_a_token_is_waited_for(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(Unavailable, match="Ray token file"):
        TokenFile(file).headers()


def test_a_projected_token_wins_over_a_static_one() -> None:
    assert ray_credentials("static", Path("/token")) == TokenFile(Path("/token"))
    assert ray_credentials("static", None) == StaticToken("static")
    assert ray_credentials("", None) == NoToken()


def test_a_token_is_in_no_representation() -> None:
    assert "s3cret" not in repr(StaticToken("s3cret"))


@pytest.mark.parametrize("address", ["ftp://head:8265", "http://", "http://head:99999999"])
def test_an_address_that_cannot_be_used_is_named(address: str) -> None:
    with pytest.raises(Misconfigured, match="dashboard address"):
        Dashboard(address)


@pytest.mark.parametrize("path", ["x", "/x y", "/x\r\nHost: other"])
async def test_a_path_that_would_change_the_request_is_never_sent(head: ScriptedHead, address: str, path: str) -> None:
    with pytest.raises(ValueError, match="cannot be asked for"):
        await Dashboard(address).get(path)
    assert head.requests == []


def test_the_client_does_not_bring_aiohttp_into_the_collector() -> None:
    program = "import raykeeper.collector.poll.poller, raykeeper.ray.dashboard, sys; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
