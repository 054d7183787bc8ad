"""The API over gRPC, with health and reflection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    ("grpc.max_send_message_length", -1),
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
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
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

    async def behave(body: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        metadata = dict(context.invocation_metadata() or ())
        authorization = metadata.get("authorization")
        shown = authorization if isinstance(authorization, str) else None
        left = context.time_remaining()
        origin = Origin("grpc", context.peer(), shown, left)
        try:
            return await dispatcher.answer(call, _parsed(kind, body), origin)
        except CallFailed as failure:
            await context.abort(_CODES[failure.code], _fitting(str(failure)))

    return grpc.unary_unary_rpc_method_handler(behave, request_deserializer=None, response_serializer=_serialized)


def _parsed(kind: type[Message], body: bytes) -> Message:
    try:
        return kind.FromString(body)
    except DecodeError as exc:
        raise CallFailed(Code.Internal, f"grpc: error unmarshalling request: {exc}") from exc


def _fitting(text: str) -> str:
    """A text that fits into the trailer of a call: a longer one would cost the client the code as well."""
    return text if len(quote(text)) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 12]}…"


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
