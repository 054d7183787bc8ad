"""One call from its caller to its answer, in either protocol: who it is, how long it may take, what is noted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from google.protobuf.message import Message

from raykeeper.apiserver.auth.callers import Authenticator
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.metrics import ApiMetrics
from raykeeper.apiserver.services.table import Call
from raykeeper.clock import Clock
from raykeeper.logs import Log

log = Log("raykeeper.apiserver.access")


@dataclass(frozen=True)
class Origin:
    """Where a call came from, and what it shows."""

    protocol: str
    peer: str
    authorization: str | None
    seconds: float | None = None
    """How long its client waits; None where it does not say."""


@dataclass(frozen=True)
class Dispatcher:
    """Does calls."""

    authenticator: Authenticator
    metrics: ApiMetrics
    clock: Clock
    call_seconds: float

    async def admit(self, origin: Origin) -> None:
        """Raise `CallFailed` for who will not be let in: asked before a body of theirs takes memory."""
        try:
            async with asyncio.timeout(self.call_seconds):
                await self.authenticator.caller(origin.authorization)
        except TimeoutError as exc:
            raise CallFailed(Code.DeadlineExceeded, "context deadline exceeded") from exc
        except CallFailed as exc:
            log.info("caller not let in", code=exc.code.name, protocol=origin.protocol, peer=origin.peer)
            raise

    async def answer(self, call: Call, request: Message, origin: Origin) -> Message:
        """What the call answers. Raises `CallFailed` and nothing else."""

        async def at_hand() -> Message:
            return request

        return await self.answer_unread(call, at_hand, origin)

    async def answer_unread(self, call: Call, read: Callable[[], Awaitable[Message]], origin: Origin) -> Message:
        """As `answer`, for a request that is read once its caller is let in: before, it shall take no memory."""
        began, caller, code = self.clock.steady(), "", Code.OK
        self.metrics.began(call)
        try:
            async with asyncio.timeout(min(self.call_seconds, origin.seconds or self.call_seconds)):
                who = await self.authenticator.caller(origin.authorization)
                caller = who.name
                return await call.function(who.kube, await read())
        except TimeoutError as exc:
            code = Code.DeadlineExceeded
            raise CallFailed(code, "context deadline exceeded") from exc
        except asyncio.CancelledError:
            code = Code.Canceled
            raise
        except CallFailed as exc:
            code = exc.code
            raise
        except Exception as exc:
            code = Code.Internal
            self.metrics.bugs.inc()
            log.exception("call failed by a bug", call=call.method.full_name)
            raise CallFailed(code, "internal error; the server's log has the reason") from exc
        finally:
            seconds = self.clock.steady() - began
            self.metrics.ended(call, code, seconds)
            log.info(
                "call",
                call=call.method.full_name,
                code=code.name,
                seconds=round(seconds, 4),
                caller=caller,
                protocol=origin.protocol,
                peer=origin.peer,
            )
