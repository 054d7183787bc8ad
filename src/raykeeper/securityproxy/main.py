"""The proxy as a process: its settings, its log, both protocols, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp

from raykeeper.errors import Misconfigured
from raykeeper.logs import Log, set_up_logs
from raykeeper.securityproxy.http_proxy import CONNECT_SECONDS, HttpProxy
from raykeeper.securityproxy.settings import SAFE_TOKEN_LENGTH, SecurityProxySettings, read_settings
from raykeeper.securityproxy.token import Token
from raykeeper.settings.addresses import Address
from raykeeper.web.cors import Cors
from raykeeper.web.listener import BoundedServer, open_listener

STOP_SECONDS: Final = 20.0
"""For requests under way when the process is told to end; the kubelet kills at 30."""
LEAVING_SECONDS: Final = 1.0
"""Between failing probes and closing the door."""

log = Log("raykeeper.securityproxy")


def run(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Be the proxy until it is told to end; the exit code. Raises `Misconfigured`."""
    if arguments:
        raise Misconfigured("argument", arguments[0], "all settings are environment variables; --help lists them")
    settings = read_settings(environment)
    set_up_logs(settings.logs)
    token = Token.of(settings)
    if len(token) < SAFE_TOKEN_LENGTH:
        log.warning("the token is short enough to be guessed", characters_needed=SAFE_TOKEN_LENGTH)
    with open_listener("HTTP_LOCAL_PORT", Address(None, settings.http.local)) as listener:
        asyncio.run(_serve(settings, token, listener))
    return 0


async def _serve(settings: SecurityProxySettings, token: Token, listener: socket.socket) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    # No limit on the whole: a log may be followed for days.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        proxy = HttpProxy(settings.http.remote, settings.prefix, token, session, Cors(settings.cors_origin))
        connections = BoundedServer(proxy.answer)
        http_server = await loop.create_server(connections, sock=listener)
        grpc_proxy = None
        if settings.grpc is not None:
            from raykeeper.securityproxy.grpc_proxy import GrpcProxy  # 20 MB that HTTP alone does without

            grpc_proxy = GrpcProxy(settings.grpc, token)
            await grpc_proxy.start()
        log.info("listening", http=settings.http.local, grpc=settings.grpc and settings.grpc.local)
        await stopped.wait()
        proxy.is_stopping = True
        await asyncio.sleep(LEAVING_SECONDS)
        http_server.close()
        connections.pre_shutdown()
        ends = [connections.shutdown(STOP_SECONDS), *([grpc_proxy.stop(STOP_SECONDS)] if grpc_proxy else [])]
        await asyncio.gather(*ends)
        log.info("stopped")
