"""The three programs of a demo: the history server, Ray, and the collector beside it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from raykeeper.demo.asking import LOOPBACK, LocalServer
from raykeeper.demo.children import Child, Children
from raykeeper.demo.commands import (
    Places,
    Ports,
    collector_command,
    history_command,
    ray_command,
    ray_environment,
    token_environment,
)
from raykeeper.demo.driverlog import DriverLog
from raykeeper.demo.errors import DemoFailed
from raykeeper.demo.ports import free_ports
from raykeeper.demo.rayinstall import RayInstall
from raykeeper.demo.rayjob import JobEnd, follow, submit
from raykeeper.demo.remembered import RememberedSession
from raykeeper.demo.screen import Screen
from raykeeper.demo.stored import newest_event
from raykeeper.errors import Unavailable

START_SECONDS = 240.0  # Ray needs ten, and much longer on a machine that does other things
REMEMBER_SECONDS = 120.0  # for the history to show what Ray has said; two or three are usual
END_SECONDS = 60.0  # for Ray, and for the collector, whose grace period is 25


@dataclass(frozen=True)
class Programs:
    """What runs during a demo."""

    children: Children
    places: Places
    history: Child
    collector: Child
    head: Child
    history_server: LocalServer
    dashboard: LocalServer

    @property
    def session(self) -> str:
        """The name of Ray's session, as its files have it."""
        return (self.places.ray / "session_latest").resolve().name

    def wait_until_started(self) -> None:
        """Until the history server and Ray's dashboard answer. Raises DemoFailed."""
        self._wait(lambda: self.history_server.answers("/readz"), self.history, "starting the history server")
        self._wait(lambda: self.dashboard.answers("/api/version"), self.head, "starting Ray")

    def run_job(self, line: str, submission_id: str, screen: Screen) -> JobEnd:
        """Have Ray run the shell line, showing what it prints, until it ends."""
        self._wait(lambda: self._is_submitted(line, submission_id), self.head, "handing in the job")
        output = DriverLog(self.places.ray / "session_latest" / "logs" / f"job-driver-{submission_id}.log")
        end = follow(self.dashboard, submission_id, lambda: screen.quote(output.new_lines()), check=self.children.check)
        screen.quote(output.rest())
        return end

    def end_ray(self, remembered: RememberedSession, submission_id: str) -> None:
        """End Ray and the collector as Kubernetes would, both at the same time, until the history has all of it.

        What only the dashboard knows has reached the store before: a head without work is gone before a last poll.
        """
        self._wait(
            lambda: remembered.knows_end_of(submission_id), self.collector, "remembering the job", REMEMBER_SECONDS
        )
        for child in (self.collector, self.head):
            child.ask_to_end()
        self._wait(lambda: self.head.exit_code is not None, self.head, "ending Ray", END_SECONDS)
        self._wait(lambda: self.collector.exit_code is not None, self.collector, "ending the collector", END_SECONDS)
        if self.collector.exit_code != 0:
            raise DemoFailed("the collector left something behind", self.collector.last_lines)
        newest = newest_event(self.places.store, remembered.id)
        self._wait(
            lambda: remembered.knows_events_until(newest), self.history, "opening the dead session", REMEMBER_SECONDS
        )

    def _wait(self, is_true: Callable[[], bool], child: Child, what: str, seconds: float = START_SECONDS) -> None:
        self.children.wait_until(is_true, seconds, what, child)

    def _is_submitted(self, line: str, submission_id: str) -> bool:
        """Whether Ray took the job; it refuses while its agent starts."""
        try:
            submit(self.dashboard, line, submission_id)
        except Unavailable:
            return False
        return True


def start_programs(
    children: Children, places: Places, ray: RayInstall, environment: Mapping[str, str], *, is_small: bool
) -> Programs:
    """Start all of them; Ray once the collector listens, so that not even its first events have to wait."""
    ports, token = Ports(*free_ports(7)), secrets.token_hex(32)
    history = children.start("history server", history_command(places, ports, ray))
    collector = children.start("collector", collector_command(places, ports), token_environment(token))
    children.wait_until(lambda: _listens(ports.events), START_SECONDS, "starting the collector", collector)
    variables = token_environment(token) | ray_environment(ports, ray, environment)
    head = children.start("ray", ray_command(places, ports, ray, is_small=is_small), variables)
    return Programs(
        children,
        places,
        history,
        collector,
        head,
        history_server=LocalServer("history server", ports.history),
        dashboard=LocalServer("Ray's dashboard", ports.dashboard, token),
    )


def _listens(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1.0).close()
    except OSError:
        return False
    return True
