"""The application on a socket: open it, answer until told to stop, end open answers in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address

_SHUTDOWN_SECONDS = 10  # the kubelet kills at 30; whoever follows a log is cut off
_BACKLOG = 1024
_IDLE_SECONDS = 75  # longer than a load balancer's 60, so that it never sends on a connection we just closed


class Server(uvicorn.Server):
    """uvicorn, but signals are its owner's: uvicorn itself would end the process by the signal it got."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Answer what was asked, then end."""
        self.should_exit = True


def make_server(app: ASGIApp) -> Server:
    return Server(
        uvicorn.Config(
            app,
            http="httptools",
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


def open_listener(setting: str, text: str, address: Address) -> socket.socket:
    """A listening socket; both families where no host is given. Stops by name on an address that cannot be used."""
    try:
        if address.host is None and socket.has_dualstack_ipv6():
            family = socket.AF_INET6
            return socket.create_server(("", address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET
        return socket.create_server((address.host or "", address.port), family=family, backlog=_BACKLOG)
    except OSError as exc:
        raise Misconfigured(setting, text, f"cannot listen there ({exc.strerror or exc})") from exc
