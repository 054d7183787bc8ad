"""Clients that send too much, too deep, too slowly or too often cost nobody else anything."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import grpc
import psutil
import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.waiting import BUSY_FACTOR
from raykeeper.apiserver.protos import cluster_pb2, config_pb2
from raykeeper.web.listener import BODY_BYTES, connections_limit
from support.api_processes import ApiProcess, api_server_on

MIB = 1 << 20
PATH = "/apis/v1/namespaces/default/clusters"
CREATE = "/proto.ClusterService/CreateCluster"


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    """One for all of these tests: none may cost the next one anything."""
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as process:
        yield process


def memory(server: ApiProcess) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


async def is_quick(server: ApiProcess) -> bool:
    """Whether somebody else is answered meanwhile."""
    began = time.monotonic()
    async with aiohttp.ClientSession() as session, session.get(f"{server.rest.server}/healthz") as answer:
        return answer.status == 200 and time.monotonic() - began < 2 * BUSY_FACTOR


DEEP = [
    b'{"a":' * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"[" * 1_000_000,
    b'{"annotations":' + b"[" * 100_000,
    json.dumps({"clusterSpec": {"spec": {"a": [[[[[[[[[]]]]]]]]]}}}).encode(),
    b'{"clusterSpec": {"spec": ' + b'{"a":' * 5000 + b"1" + b"}" * 5002,
    b'{"name": "' + b"x" * (4 * MIB) + b'"}',
    b'{"annotations": {' + b",".join(b'"k%d": "v"' % number for number in range(100_000)) + b"}}",
    b'{"name": ' + b"9" * 1_000_000 + b"}",
    b"\xff" * MIB,
    b'{"name": "\\ud800\\udfff"}',
]


@pytest.mark.parametrize("body", DEEP, ids=range(len(DEEP)))
async def test_deep_and_strange_json_is_refused_in_time(body: bytes, server: ApiProcess) -> None:
    async with aiohttp.ClientSession() as session:
        began = time.monotonic()
        async with session.post(f"{server.rest.server}{PATH}", data=io.BytesIO(body)) as answer:
            assert answer.status == 400
            refusal = await answer.json()
            assert refusal["code"] == 3
            assert len(refusal["message"]) < 1000
        assert time.monotonic() - began < 10 * BUSY_FACTOR
    assert "by a bug" not in server.output


async def test_a_body_that_is_too_large_is_refused_before_it_is_taken(server: ApiProcess) -> None:
    before = memory(server)
    async with aiohttp.ClientSession() as session:
        for _ in range(20):
            with contextlib.suppress(aiohttp.ClientError):  # the server may hang up on who goes on sending
                async with session.post(
                    f"{server.rest.server}{PATH}", data=io.BytesIO(bytes(BODY_BYTES + 1))
                ) as answer:
                    assert answer.status == 413
                    assert (await answer.json())["code"] == 3

        async def endless() -> object:
            while True:
                yield bytes(MIB)

        with contextlib.suppress(aiohttp.ClientError):
            async with session.post(f"{server.rest.server}{PATH}", data=endless()) as answer:
                assert answer.status == 413
    assert memory(server) - before < 48 * MIB
    assert await is_quick(server)


async def test_packed_bodies_are_not_unpacked(server: ApiProcess) -> None:
    import zlib

    bomb = zlib.compress(bytes(200 * MIB), 9)
    before = memory(server)
    async with aiohttp.ClientSession() as session:
        for encoding in ("gzip", "deflate", "br"):
            headers = {"Content-Encoding": encoding}
            async with session.post(f"{server.rest.server}{PATH}", data=io.BytesIO(bomb), headers=headers) as answer:
                assert answer.status == 400
    assert memory(server) - before < 48 * MIB


async def test_a_message_that_is_too_large_is_refused_over_grpc(server: ApiProcess) -> None:
    request = cluster_pb2.CreateClusterRequest(namespace="default")
    request.cluster.name = "x" * (9 * MIB)
    options = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}", options=options) as channel:
        call: Any = channel.unary_unary(CREATE, request_serializer=cluster_pb2.CreateClusterRequest.SerializeToString)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call(request, timeout=60)
    assert refusal.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_bytes_that_are_no_message_are_refused_over_grpc(server: ApiProcess) -> None:
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as plain:
        channel: Any = plain
        for body in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", bytes([0x0A, 5]), b"\x0a" * 10_000):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await channel.unary_unary(CREATE)(body, timeout=60)
            assert refusal.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT)
        templates: Any = channel.unary_unary(
            "/proto.ComputeTemplateService/ListComputeTemplates",
            request_serializer=config_pb2.ListComputeTemplatesRequest.SerializeToString,
        )
        assert await templates(config_pb2.ListComputeTemplatesRequest(namespace="default"), timeout=60) is not None


@pytest.mark.parametrize(
    "call",
    ["ClusterService/CreateCluster", "ComputeTemplateService/CreateComputeTemplate", "RayJobService/CreateRayJob"],
)
async def test_a_request_without_its_object_ends_no_process(call: str, server: ApiProcess) -> None:
    """KubeRay's server ends with the first of these."""
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as plain:
        channel: Any = plain
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await channel.unary_unary(f"/proto.{call}")(b"\x12\x07default", timeout=60)
        assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "namespace in the request is different" in str(refusal.value.details())


async def test_names_cannot_lead_to_other_paths(server: ApiProcess) -> None:
    """Over gRPC a name may be anything; with our rights it must not read a Secret."""
    names = [
        "../secrets/x",
        "a/../../secrets",
        "..",
        ".",
        "a?watch=true",
        "a#b",
        "a%2f..",
        "/",
        "a/b",
        "\n",
        "é",
        "x" * 5000,
    ]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as channel:
        get: Any = channel.unary_unary(
            "/proto.ComputeTemplateService/GetComputeTemplate",
            request_serializer=config_pb2.GetComputeTemplateRequest.SerializeToString,
        )
        for name in names:
            for place in ({"name": name, "namespace": "default"}, {"name": "x", "namespace": name}):
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await get(config_pb2.GetComputeTemplateRequest(**place), timeout=60)
                assert refusal.value.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNKNOWN), place
    assert "by a bug" not in server.output


async def test_slow_clients_do_not_keep_others_waiting(server: ApiProcess) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n".encode()
    slow = [await asyncio.open_connection(LOOPBACK, server.ports.http) for _ in range(200)]
    for number, (_, writer) in enumerate(slow):
        writer.write(head[: number % len(head)] if number % 2 else head + b"{")
        await writer.drain()
    assert await is_quick(server)
    async with aiohttp.ClientSession() as session, session.get(f"{server.rest.server}{PATH}") as answer:
        assert answer.status == 200
    for _, writer in slow:
        writer.close()


async def test_a_thousand_connections_and_more_are_served_or_replaced(server: ApiProcess) -> None:
    before = memory(server)
    many = min(1000, connections_limit())
    idle = [await asyncio.open_connection(LOOPBACK, server.ports.http) for _ in range(many)]
    assert await is_quick(server)

    async def ask() -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{server.rest.server}/readyz") as answer:
            return answer.status

    assert set(await asyncio.gather(*(ask() for _ in range(100)))) == {200}
    for _, writer in idle:
        writer.close()
    assert memory(server) - before < 100 * MIB


async def test_a_thousand_calls_at_once_are_answered_or_refused(server: ApiProcess) -> None:
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as channel:
        call: Any = channel.unary_unary(
            "/proto.ComputeTemplateService/ListComputeTemplates",
            request_serializer=config_pb2.ListComputeTemplatesRequest.SerializeToString,
        )
        request = config_pb2.ListComputeTemplatesRequest(namespace="default")
        calls = [call(request, timeout=120) for _ in range(1000)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    codes = {one.code() for one in outcomes if isinstance(one, grpc.aio.AioRpcError)}
    assert codes <= {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert sum(isinstance(one, bytes) for one in outcomes) > 500
    assert await is_quick(server)


async def test_requests_that_nobody_waits_for_are_given_up(server: ApiProcess) -> None:
    for _ in range(300):
        _, writer = await asyncio.open_connection(LOOPBACK, server.ports.http)
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        writer.transport.abort()
    assert await is_quick(server)
    assert "by a bug" not in server.output
    assert "Traceback" not in server.output


NONSENSE = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT host:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /apis/v1/clusters?" + b"a=1&" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /apis/v1/namespaces/%ff%fe/clusters HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /apis/v1/clusters?continue=%ff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /swagger/../../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /swagger/..%2f..%2fopenapi%2fx.swagger.json HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /swagger-ui/%2e%2e/%2e%2e/app.py HTTP/1.1\r\nHost: x\r\n\r\n",
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
async def test_what_is_no_request_is_refused(nonsense: bytes, server: ApiProcess) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.ports.http)
    writer.write(nonsense)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(65536), 60)
    writer.close()
    assert not answer or answer.split(b" ")[1] in (b"307", b"400", b"404", b"501"), answer
    assert b"root:" not in answer
    assert await is_quick(server)
    assert "by a bug" not in server.output
