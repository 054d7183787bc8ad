"""The security proxy in front of servers that tests write: inside the test, or as a real process."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bed.daemons import LOOPBACK
from bed.ports import free_port
from raykeeper.securityproxy.grpc_proxy import GrpcProxy
from raykeeper.securityproxy.http_proxy import HttpProxy
from raykeeper.securityproxy.settings import PortPair
from raykeeper.securityproxy.token import Token
from raykeeper.web.cors import Cors
from raykeeper.web.listener import BoundedServer
from support.api_processes import COMMAND
from support.conditions import eventually

TOKEN = "the-token-of-this-test"


@dataclass(frozen=True)
class Proxy:
    """Where one listens."""

    http: int
    grpc: int = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.http}"


@asynccontextmanager
async def a_proxy(http_port: int, *, prefix: str = "/", cors_origin: str = "") -> AsyncIterator[Proxy]:
    """HTTP, inside the test."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        server = BoundedServer(HttpProxy(http_port, prefix, Token(TOKEN), session, Cors(cors_origin)).answer)
        listener = await asyncio.get_running_loop().create_server(server, LOOPBACK, 0)
        try:
            yield Proxy(listener.sockets[0].getsockname()[1])
        finally:
            listener.close()
            await server.shutdown(0)


@asynccontextmanager
async def a_grpc_proxy(grpc_port: int, token: str = TOKEN) -> AsyncIterator[Proxy]:
    """gRPC, inside the test."""
    ports = PortPair(free_port(), grpc_port)
    proxy = GrpcProxy(ports, Token(token))
    await proxy.start()
    try:
        yield Proxy(0, ports.local)
    finally:
        await proxy.stop(0)


@dataclass(frozen=True)
class ProxyProcess(Proxy):
    """A real process."""

    process: subprocess.Popen[bytes] | None = None
    output_file: Path = Path()

    @property
    def output(self) -> str:
        return self.output_file.read_text()

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        return self.process


@asynccontextmanager
async def a_proxy_process(
    folder: Path, http_port: int, grpc_port: int | None = None, **variables: str
) -> AsyncIterator[ProxyProcess]:
    """One that passes on to these ports, once it listens."""
    ports = [free_port(), free_port()]
    environment = {
        **os.environ,
        "HTTP_LOCAL_PORT": str(ports[0]),
        "HTTP_REMOTE_PORT": str(http_port),
        "GRPC_LOCAL_PORT": str(ports[1]),
        "GRPC_REMOTE_PORT": str(grpc_port or 1),
        "ENABLE_GRPC": "true" if grpc_port else "false",
        "SECURITY_PREFIX": "/",
        "SECURITY_TOKEN": TOKEN,
        **variables,
    }
    output = folder / f"proxy-{ports[0]}.log"
    process = await asyncio.to_thread(_started, output, environment)
    proxy = ProxyProcess(ports[0], ports[1], process, output)
    try:
        await eventually(lambda: _listens(proxy))
        yield proxy
    finally:
        process.kill()
        process.wait()


def _started(output: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with output.open("wb") as file:
        return subprocess.Popen([*COMMAND, "security-proxy"], stdout=file, stderr=file, env=environment)


async def _listens(proxy: ProxyProcess) -> bool:
    assert proxy.running.poll() is None, proxy.output
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{proxy.url}/healthz"):
            return True
    except aiohttp.ClientConnectorError:
        return False
