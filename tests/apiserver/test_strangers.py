"""Who has no login costs no memory, however much is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from support.api_access import call
from support.api_processes import ApiProcess, api_server_on

MIB = 1 << 20
MESSAGE = b"\x0a" + b"\xf0\xff\xff\x03" + b"x" * (8 * MIB - 16)
"""A message of almost the largest size, whose first field is a text."""
CALLS = 80
CREATE = "/proto.ClusterService/CreateCluster"
CHECK = "/grpc.health.v1.Health/Check"


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    folder = tmp_path_factory.mktemp("apiserver")
    (folder / "tokens").write_text("a-token-of-ours\n")
    with api_server_on(ray_crds, folder, "--auth=token", f"--auth-token-file={folder / 'tokens'}") as process:
        yield process


def peak(server: ApiProcess) -> int:
    """The most memory that it ever had."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def _any(value: Any) -> Any:
    """For what the types of gRPC say too little about."""
    return value


async def send(server: ApiProcess, path: str, *, own_channel: int) -> grpc.StatusCode:
    """The code of one call by a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1), ("raykeeper.number", own_channel)]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}", options=options) as channel:
        try:
            await _any(channel.unary_unary(path))(MESSAGE, timeout=60)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("path", "codes"),
    [(CREATE, {grpc.StatusCode.UNAUTHENTICATED}), (CHECK, {grpc.StatusCode.INVALID_ARGUMENT})],
)
async def test_large_messages_of_strangers_are_not_held(
    server: ApiProcess, path: str, codes: set[grpc.StatusCode]
) -> None:
    before = peak(server)
    answered = await asyncio.gather(*(send(server, path, own_channel=number) for number in range(CALLS)))
    allowed = codes | {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}
    assert set(answered) <= allowed
    assert set(answered) & codes
    assert peak(server) - before < 200 * MIB, f"{(peak(server) - before) / MIB:.0f} MB for {CALLS} calls of 8 MiB"


async def test_health_reflection_and_calls_with_a_login_work_as_before(server: ApiProcess) -> None:
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as channel:
        answer = await channel.unary_unary(
            CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )(health_pb2.HealthCheckRequest(), timeout=30)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )(health_pb2.HealthCheckRequest(), timeout=30)
        assert _any(await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
    listed = "proto.ComputeTemplateService.ListAllComputeTemplates"
    for token, code in (("a-token-of-ours", "OK"), ("another", "UNAUTHENTICATED")):
        assert call(server.ports, "grpc", listed, {}, {"authorization": token}).code == code
