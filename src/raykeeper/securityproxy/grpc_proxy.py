"""gRPC through the proxy: any method of any service, message by message, without knowing what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

from raykeeper.errors import Misconfigured
from raykeeper.logs import Log
from raykeeper.securityproxy.settings import PortPair
from raykeeper.securityproxy.token import Token

HEALTH: Final = "/grpc.health.v1.Health/"
"""Asked by kubelets and load balancers, which have no token."""
MOST_CALLS: Final = 1000
LARGEST_REQUEST: Final = 8 << 20
"""Read before anybody was asked for a token; the API server takes no more than this either."""
_OPTIONS: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)
_ANSWERS: Final = ("grpc.max_receive_message_length", -1)  # logs are long, and the API server bounds them itself
_RESERVED: Final = frozenset({"te", "content-type", "user-agent"})
_RESERVED_PREFIXES: Final = ("grpc-", ":")
"""Metadata that gRPC makes itself for each connection."""

log = Log("raykeeper.securityproxy.access")


class GrpcProxy(grpc.GenericRpcHandler):
    """Serves every method there is by asking the API server."""

    def __init__(self, ports: PortPair, token: Token) -> None:
        self._token = token
        self._channel = grpc.aio.insecure_channel(f"localhost:{ports.remote}", options=[*_OPTIONS, _ANSWERS])
        bounds = [*_OPTIONS, ("grpc.max_receive_message_length", LARGEST_REQUEST)]
        self._server = grpc.aio.server(options=bounds, maximum_concurrent_rpcs=MOST_CALLS)
        self._server.add_generic_rpc_handlers([self])
        try:
            self._server.add_insecure_port(f"[::]:{ports.local}")
        except RuntimeError as exc:
            raise Misconfigured("GRPC_LOCAL_PORT", ports.local, "cannot listen there; is the port taken?") from exc

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace: float) -> None:
        """Take no more calls, and let those under way end within `grace` seconds."""
        await self._server.stop(grace)
        await self._channel.close()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """Called by gRPC: a handler for the method, whatever it is. A stream of one message is a plain call."""
        method = handler_call_details.method

        async def behave(
            requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
        ) -> AsyncIterator[bytes]:
            async for answer in self._answers(method, requests, context):
                yield answer

        return grpc.stream_stream_rpc_method_handler(behave, request_deserializer=None, response_serializer=None)

    async def _answers(
        self, method: str, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        metadata = [(name, value) for name, value in context.invocation_metadata() or ()]
        shown = next((value for name, value in metadata if name == "authorization"), None)
        if not method.startswith(HEALTH) and not self._token.admits(shown if isinstance(shown, str) else None):
            log.info("call refused", method=method, peer=context.peer())
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Request unauthorized")
        kept = tuple((name, value) for name, value in metadata if not _is_reserved(name))
        open_call: Any = self._channel.stream_stream(method, request_serializer=None, response_deserializer=None)
        call = open_call(requests, metadata=kept, timeout=context.time_remaining())
        try:
            await context.send_initial_metadata(tuple(await call.initial_metadata()))
            async for answer in call:
                yield answer
            code = await self._end(call, context)
            log.info("call", method=method, code=code.name, peer=context.peer())
        except grpc.aio.AioRpcError:
            await self._end(call, context)
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _end(self, call: Any, context: grpc.aio.ServicerContext[bytes, bytes]) -> grpc.StatusCode:
        """Pass on how the call ended."""
        code: grpc.StatusCode = await call.code()
        context.set_trailing_metadata(tuple(await call.trailing_metadata() or ()))
        context.set_code(code)
        context.set_details(await call.details() or "")
        return code


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or name.startswith(_RESERVED_PREFIXES)
