"""Posts alerts: the only code that talks to receivers. TLS is verified, redirects are not followed, answers bounded."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from pathlib import Path
from typing import Final

import aiohttp

from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.history.alert_receivers import AlertTiming, Receiver, SecretMissing
from raykeeper.history.alerts.bodies import body_of, endpoint_of
from raykeeper.history.alerts.model import Alert

ANSWER_BYTES: Final = 64 << 10
"""Of an answer that are read, so that the connection ends well; what it says is of no use to us."""
SIGNATURE_HEADER: Final = "X-Raykeeper-Signature"


class Sender:
    """Sends alerts until it is closed."""

    def __init__(self, timing: AlertTiming, clock: Clock) -> None:
        self._timing = timing
        self._clock = clock

    async def send(self, alert: Alert, receiver: Receiver) -> None:
        """Post an alert; the receiver said 2xx. Raises Unavailable, whose text has neither URL nor answer."""
        service = f"receiver {receiver.name}"
        body = bytes(body_of(alert, receiver, self._clock.now()).json)
        try:
            url = endpoint_of(receiver, receiver.url())
            headers = self._headers(alert, receiver, body)
            context = await asyncio.to_thread(_trust, receiver.ca_file)
        except SecretMissing as exc:
            raise Unavailable(service, str(exc)) from None
        except (OSError, ssl.SSLError) as exc:
            raise Unavailable(service, f"its ca_file cannot be used ({type(exc).__name__})") from None
        timeout = aiohttp.ClientTimeout(total=self._timing.timeout_seconds)
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
                ) as http,
                http.post(url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
                await answer.content.read(ANSWER_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            # The words of these errors hold the URL, which may be a secret.
            raise Unavailable(service, f"it cannot be reached ({type(exc).__name__})") from None
        if not 200 <= status < 300:
            raise Unavailable(service, f"it answered {status}")

    def _headers(self, alert: Alert, receiver: Receiver, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "raykeeper", "Idempotency-Key": alert.id}
        if receiver.bearer is not None:
            headers["Authorization"] = f"Bearer {receiver.bearer.read()}"
        if receiver.signing is not None:
            headers[SIGNATURE_HEADER] = signature(receiver.signing.read(), int(self._clock.now().timestamp()), body)
        return headers


def signature(secret: str, unix_seconds: int, body: bytes) -> str:
    """The header by which a receiver knows that a body is ours and how old it is. Pure."""
    digest = hmac.new(secret.encode(), f"{unix_seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={unix_seconds},v1={digest}"


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)
