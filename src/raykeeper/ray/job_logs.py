"""The log of a submitted job while it runs: Ray sends it over a websocket, from its beginning to the end of the job."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import quote

from raykeeper.errors import Unavailable
from raykeeper.ray.credentials import Credentials
from raykeeper.ray.dashboard import WANTS_ANOTHER_TOKEN
from raykeeper.ray.errors import RayRefused
from raykeeper.ray.exchange import Target

FRAME_BYTES: Final = 64 << 20
"""Ray sends ten lines or twenty thousand characters at a time, but a line of any length whole."""
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 20.0
"""A connection is asked after this whether it lives, and has as long to answer."""


async def job_log(address: str, credentials: Credentials, submission_id: str) -> AsyncGenerator[str, None]:
    """The log in pieces, from its beginning; ends when Ray ends it.

    Raises `Unavailable` where it was cut, and `RayRefused` for want of a token.
    """
    from websockets.asyncio.client import connect  # not for those who only ask
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

    target, service = Target.parse(address), f"Ray dashboard {address}"
    scheme = "wss" if target.is_tls else "ws"
    host = f"[{target.host}]" if ":" in target.host else target.host
    url = f"{scheme}://{host}:{target.port}{target.prefix}/api/jobs/{quote(submission_id, safe='')}/logs/tail"
    try:
        async with connect(
            url,
            additional_headers=credentials.headers(),
            compression=None,  # Ray's proxy passes the wish on and cannot read what comes back: the log would be empty
            max_size=FRAME_BYTES,
            open_timeout=CONNECT_SECONDS,
            ping_interval=SILENCE_SECONDS,
            ping_timeout=SILENCE_SECONDS,
            close_timeout=1.0,
            proxy=None,
        ) as socket:
            async for frame in socket:
                yield frame if isinstance(frame, str) else frame.decode(errors="replace")
    except InvalidStatus as error:
        if error.response.status_code in WANTS_ANOTHER_TOKEN:
            raise RayRefused(service, error.response.status_code) from error
        raise Unavailable(service, f"the log of job {submission_id}: {error}") from error
    except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as error:
        raise Unavailable(service, f"the log of job {submission_id} was cut: {error}") from error
