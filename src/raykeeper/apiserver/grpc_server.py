"""The API over gRPC, with health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from raykeeper.apiserver.dispatch import Dispatcher, Origin
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.services.table import SERVED, Call
from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address

LARGEST_REQUEST: Final = 8 << 20
"""Kubernetes takes objects of 1.5 MB."""
LONGEST_TEXT: Final = 6000
"""Bytes of an error, percent-encoded; clients take 8192 of all trailers together."""
MOST_CALLS: Final = 1000
"""At once; one more is refused with ResourceExhausted."""
MOST_STRANGERS: Final = 4
"""Messages that are read at once of calls without a login."""
STRANGER_SECONDS: Final = 5.0
"""So long such a message may take."""
STRANGER_BYTES: Final = 64 << 10
"""So large it may be."""
_OPEN: Final = (f"/{HEALTH}/", f"/{reflection.SERVICE_NAME}/")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.bdp_probe", 0),  # so that 64 KB of a message that nobody reads are held, and not megabytes
    ("grpc.so_reuseport", 0),  # two servers at one port would share calls in silence
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.keepalive_time_ms", 60_000),  # clients that vanished are found out and dropped
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}

Behavior = Callable[[Any, Any], Awaitable[Message]]


class GrpcServer:
    """Listens once it is made; `port` says where."""

    def __init__(self, address: Address, calls: Sequence[Call], dispatcher: Dispatcher) -> None:
        self._server = grpc.aio.server(
            options=_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS, interceptors=[_FewStrangers()]
        )
        self._health = health_aio.HealthServicer()
        for service, methods in groupby(calls, key=lambda call: call.service):
            handlers = {call.name: _handler(call, dispatcher) for call in methods}
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [*(str(service.full_name) for service in SERVED), HEALTH, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)
        self.port = self._listen(address)

    def _listen(self, address: Address) -> int:
        host = f"[{address.host}]" if address.host and ":" in address.host else address.host or "[::]"
        try:
            return self._server.add_insecure_port(f"{host}:{address.port}")
        except RuntimeError as exc:
            raise Misconfigured("--rpcPortFlag", str(address), "cannot listen there; is the port taken?") from exc

    async def start(self) -> None:
        await self._server.start()
        for name in ("", *(str(service.full_name) for service in SERVED)):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float) -> None:
        """Take no more calls, and let those under way end within `grace` seconds."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)


def _handler(call: Call, dispatcher: Dispatcher) -> grpc.RpcMethodHandler[Any, Any]:
    kind = GetMessageClass(call.method.input_type)

    # A stream of one message is what a unary call is on the wire; only so can we look who asks before it is read.
    async def behave(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        metadata = dict(context.invocation_metadata() or ())
        authorization = metadata.get("authorization")
        shown = authorization if isinstance(authorization, str) else None
        left = context.time_remaining()
        origin = Origin("grpc", context.peer(), shown, left)

        async def read() -> Message:
            return _parsed(kind, await context.read())

        try:
            return await dispatcher.answer_unread(call, read, origin)
        except CallFailed as failure:
            await context.abort(_CODES[failure.code], _fitting(str(failure)))

    return grpc.stream_unary_rpc_method_handler(behave, request_deserializer=None, response_serializer=_serialized)


class _FewStrangers(grpc.aio.ServerInterceptor):
    """Lets few messages be read at once of calls that need no login: health and reflection. Each may be large."""

    def __init__(self) -> None:
        self._reads = asyncio.Semaphore(MOST_STRANGERS)

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        handler = await continuation(details)
        if handler is None or not str(details.method).startswith(_OPEN):
            return handler
        writes = {"response_serializer": handler.response_serializer}
        if handler.unary_unary is not None:

            async def check(_: object, context: Any) -> Any:
                return await handler.unary_unary(await self._message(handler, context), context)

            return grpc.stream_unary_rpc_method_handler(check, **writes)
        if handler.unary_stream is not None:

            async def watch(_: object, context: Any) -> None:
                await handler.unary_stream(await self._message(handler, context), context)

            return grpc.stream_stream_rpc_method_handler(watch, **writes)

        async def reflect(_: object, context: Any) -> AsyncIterator[Any]:
            async for answer in handler.stream_stream(self._messages(handler, context), context):
                yield answer

        return grpc.stream_stream_rpc_method_handler(reflect, **writes)

    async def _messages(self, handler: Any, context: Any) -> AsyncIterator[Any]:
        while (body := await self._read(context)) is not None:
            yield handler.request_deserializer(body)

    async def _message(self, handler: Any, context: Any) -> Any:
        body = await self._read(context)
        if body is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no message came, or a large one")
        return handler.request_deserializer(body)

    async def _read(self, context: Any) -> bytes | None:
        """The next message; None at the end, where none comes in time, and for one that is large."""
        try:
            async with self._reads, asyncio.timeout(STRANGER_SECONDS):
                body = await context.read()
        except TimeoutError:
            return None
        return body if isinstance(body, bytes) and len(body) <= STRANGER_BYTES else None


def _parsed(kind: type[Message], body: object) -> Message:
    if not isinstance(body, bytes):
        raise CallFailed(Code.Internal, "the call has no message")
    try:
        return kind.FromString(body)
    except DecodeError as exc:
        raise CallFailed(Code.Internal, f"grpc: error unmarshalling request: {exc}") from exc


def _fitting(text: str) -> str:
    """A text that fits into the trailer of a call: a longer one would cost the client the code as well."""
    return text if len(quote(text)) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 12]}…"


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
