"""gRPC through the security proxy: any call of any kind, with its metadata, status and deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from bed.daemons import LOOPBACK
from raykeeper.securityproxy.grpc_proxy import LARGEST_REQUEST
from support.conditions import until
from support.security_proxies import TOKEN, Proxy, a_grpc_proxy, a_proxy_process

SHOWN = (("authorization", TOKEN),)
MIB = 1 << 20


class Backend(grpc.GenericRpcHandler):
    """A server of made-up methods, whose messages are plain bytes."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.cancelled = asyncio.Event()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method
        self.called.append(method)
        behaviors: dict[str, Any] = {
            "/test.Service/Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "/test.Service/Large": grpc.unary_unary_rpc_method_handler(self.large),
            "/test.Service/Names": grpc.unary_unary_rpc_method_handler(self.names),
            "/test.Service/Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "/test.Service/Wait": grpc.unary_unary_rpc_method_handler(self.wait),
            "/test.Service/Many": grpc.unary_stream_rpc_method_handler(self.many),
            "/test.Service/Both": grpc.stream_stream_rpc_method_handler(self.both),
            "/grpc.health.v1.Health/Check": grpc.unary_unary_rpc_method_handler(self.unary),
        }
        return behaviors.get(method)

    async def unary(self, request: bytes, context: Any) -> bytes:
        metadata = dict(context.invocation_metadata())
        await context.send_initial_metadata((("x-early", "1"),))
        context.set_trailing_metadata((("x-late", "2"),))
        remaining = context.time_remaining()
        return b"|".join([request, metadata.get("x-mine", "").encode(), b"deadline" if remaining else b""])

    async def large(self, request: bytes, _: Any) -> bytes:
        return bytes(int(request))

    async def names(self, _: bytes, context: Any) -> bytes:
        return " ".join(name for name, _ in context.invocation_metadata()).encode()

    async def fail(self, request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\x08\x05"), ("x-late", "2")))
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"no: {request.decode()}")
        raise AssertionError

    async def wait(self, request: bytes, context: Any) -> bytes:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return request

    async def many(self, request: bytes, _: Any) -> AsyncIterator[bytes]:
        for number in range(int(request)):
            yield str(number).encode()

    async def both(self, requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield b"heard " + request


@pytest.fixture
async def backend() -> Backend:
    return Backend()


@pytest.fixture
async def proxy(backend: Backend) -> AsyncIterator[Proxy]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers([backend])
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    try:
        async with a_grpc_proxy(port) as proxy:
            yield proxy
    finally:
        await server.stop(0)


@pytest.fixture
async def channel(proxy: Proxy) -> AsyncIterator[Any]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{proxy.grpc}", options=options) as channel:
        yield channel


async def test_a_call_passes_with_its_metadata(channel: Any) -> None:
    call: Any = channel.unary_unary("/test.Service/Unary")(b"hello", metadata=(*SHOWN, ("x-mine", "a")), timeout=60)
    assert await call == b"hello|a|deadline"
    assert dict(await call.initial_metadata())["x-early"] == "1"
    assert dict(await call.trailing_metadata())["x-late"] == "2"


@pytest.mark.parametrize("shown", [None, "", "x", TOKEN[:-1], TOKEN.upper(), f"Basic {TOKEN}"])
async def test_without_the_token_nothing_passes(shown: str | None, channel: Any, backend: Backend) -> None:
    metadata = () if shown is None else (("authorization", shown),)
    for method in ("Unary", "Unknown"):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await channel.unary_unary(f"/test.Service/{method}")(b"x", metadata=metadata, timeout=60)
        assert refusal.value.code() == grpc.StatusCode.UNAUTHENTICATED
        assert refusal.value.details() == "Request unauthorized"
    assert backend.called == []


async def test_mixed_case_tokens_work_over_grpc(backend: Backend) -> None:
    """KubeRay's proxy compares with the token in small letters."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([backend])
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    async with a_grpc_proxy(port, "MixedCase-12345-Token") as proxy:
        mixed: Any = grpc.aio.insecure_channel(f"{LOOPBACK}:{proxy.grpc}")
        metadata = (("authorization", "Bearer MixedCase-12345-Token"),)
        assert await mixed.unary_unary("/test.Service/Unary")(b"x", metadata=metadata, timeout=60) == b"x||deadline"
        await mixed.close()
    await server.stop(0)


async def test_health_needs_no_token(channel: Any) -> None:
    assert await channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60)


async def test_errors_pass_with_code_text_and_details(channel: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary("/test.Service/Fail")(b"why", metadata=SHOWN, timeout=60)
    assert refusal.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert refusal.value.details() == "no: why"
    trailers = dict(refusal.value.trailing_metadata())
    assert trailers["x-late"] == "2"
    assert trailers["grpc-status-details-bin"] == b"\x08\x05"


async def test_an_unknown_method_is_unimplemented(channel: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary("/test.Service/Unknown")(b"", metadata=SHOWN, timeout=60)
    assert refusal.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_streams_pass_both_ways_message_by_message(channel: Any) -> None:
    many = channel.unary_stream("/test.Service/Many")(b"1000", metadata=SHOWN)
    assert [int(answer) async for answer in many] == list(range(1000))
    both: Any = channel.stream_stream("/test.Service/Both")(metadata=SHOWN)
    for number in range(3):
        await both.write(str(number).encode())
        assert await both.read() == f"heard {number}".encode()
    await both.done_writing()
    assert await both.read() == grpc.aio.EOF


async def test_a_large_answer_passes(channel: Any) -> None:
    answer = await channel.unary_unary("/test.Service/Large")(str(32 * MIB).encode(), metadata=SHOWN, timeout=120)
    assert len(answer) == 32 * MIB


@pytest.mark.parametrize("method", ["/test.Service/Unary", "/grpc.health.v1.Health/Check"])
async def test_a_request_that_is_too_large_is_not_held(method: str, channel: Any, backend: Backend) -> None:
    """Health is asked without a token: whoever does must not fill the memory."""
    assert await channel.unary_unary(method)(bytes(LARGEST_REQUEST), metadata=SHOWN, timeout=120)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary(method)(bytes(LARGEST_REQUEST + 1), metadata=SHOWN, timeout=120)
    assert refusal.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_only_what_grpc_makes_itself_is_left_out_of_the_metadata(channel: Any) -> None:
    sent = (*SHOWN, ("tenant-id", "blue"), ("content-type-hint", "x"), ("te", "trailers"))
    names = (await channel.unary_unary("/test.Service/Names")(b"", metadata=sent, timeout=60)).decode().split()
    assert {"tenant-id", "content-type-hint"} <= set(names)


async def test_a_deadline_ends_the_call_behind_the_proxy(channel: Any, backend: Backend) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary("/test.Service/Wait")(b"", metadata=SHOWN, timeout=1)
    assert refusal.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(backend.cancelled.wait(), 60)


async def test_who_hangs_up_ends_the_call_behind_the_proxy(channel: Any, backend: Backend) -> None:
    call: Any = channel.unary_unary("/test.Service/Wait")(b"", metadata=SHOWN)
    await until(lambda: "/test.Service/Wait" in backend.called)
    call.cancel()
    await asyncio.wait_for(backend.cancelled.wait(), 60)


async def test_without_an_api_server_it_is_unavailable() -> None:
    async with a_grpc_proxy(1) as proxy:
        channel: Any = grpc.aio.insecure_channel(f"{LOOPBACK}:{proxy.grpc}")
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await channel.unary_unary("/test.Service/Unary")(b"", metadata=SHOWN, timeout=60)
        await channel.close()
    assert refusal.value.code() == grpc.StatusCode.UNAVAILABLE


async def test_the_process_passes_calls_on_and_its_log_has_no_token(backend: Backend, tmp_path: Path) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([backend])
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    async with a_proxy_process(tmp_path, 1, port) as process:
        channel: Any = grpc.aio.insecure_channel(f"{LOOPBACK}:{process.grpc}")
        assert await channel.unary_unary("/test.Service/Unary")(b"x", metadata=SHOWN, timeout=60) == b"x||deadline"
        await channel.close()
        await until(lambda: "/test.Service/Unary" in process.output)
        assert TOKEN not in process.output
    await server.stop(0)
