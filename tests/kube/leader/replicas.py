"""Replicas as real processes, and what the API server says they wrote."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bed.control_plane import ControlPlane
from bed.processes import Process
from bed.waiting import PATIENCE_SECONDS, wait_until

PROGRAM = Path(__file__).parent / "programs" / "replica.py"
QUICK = ("--election", "8,6,0.5")
"""Settings for tests in which only the order of things matters, not the default times. With much shorter ones a leader
that is short of processor time would lose its lease by itself."""


class Replica:
    """One process; `identity` is also its name."""

    def __init__(self, process: Process, identity: str) -> None:
        self.process = process
        self.identity = identity

    def lines(self) -> list[dict[str, Any]]:
        """Its log so far; a line being written is left out."""
        text = self.process.log_file.read_text() if self.process.log_file.exists() else ""
        return [_parsed(line) for line in text.split("\n")[:-1]]

    def said(self, message: str) -> bool:
        return any(message in str(line["msg"]) for line in self.lines())

    def wait_for(self, message: str, timeout: float = PATIENCE_SECONDS) -> None:
        wait_until(f"{self.identity} says {message!r}", lambda: self.said(message), timeout)

    def wait_for_end(self, timeout: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Its last line, once it has ended."""
        wait_until(f"{self.identity} ends", lambda: not self.process.alive, timeout)
        return self.lines()[-1]


class Replicas:
    """Starts replicas of one test that create ConfigMaps in one namespace, and reads what they created."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        self._folder = folder
        self._started: list[Replica] = []

    def start(
        self, identity: str, *options: str, lease_in: str | None = None, kubeconfig: Path | None = None
    ) -> Replica:
        access = kubeconfig or self._plane.admin_kubeconfig
        # Only its own namespace is watched unless `options` say otherwise: other tests run beside this one.
        place = (lease_in or self._namespace, "--objects", self._namespace, "--watch", self._namespace)
        process = Process(identity, [sys.executable, PROGRAM, access, identity, *place, *options], self._folder)
        replica = Replica(process, identity)
        replica.process.start()
        self._started.append(replica)
        return replica

    def kill_all(self) -> None:
        for replica in self._started:
            replica.process.kill()

    def writes_of(self, replica: Replica) -> list[int]:
        """The etcd revisions of what it wrote, in order: comparable between replicas, unlike times."""
        path = f"/api/v1/namespaces/{self._namespace}/configmaps?labelSelector=writer={replica.identity}"
        return sorted(int(item["metadata"]["resourceVersion"]) for item in self._plane.admin.get(path)["items"])

    def wait_for_writes(self, replica: Replica, count: int = 1, timeout: float = PATIENCE_SECONDS) -> None:
        """Return once it wrote so many more than now."""
        before = len(self.writes_of(replica))
        wait_until(f"{replica.identity} writes", lambda: len(self.writes_of(replica)) >= before + count, timeout)

    def lease(self, namespace: str | None = None) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace or self._namespace}/leases/ray-operator-leader"
        return self._plane.admin.get(path)

    def wait_for_renewal(self) -> None:
        """Return once the lease was renewed once more."""
        before = self.lease()["spec"]["renewTime"]
        wait_until("the lease is renewed", lambda: self.lease()["spec"]["renewTime"] != before)


@contextmanager
def replicas_of(plane: ControlPlane, namespace: str, folder: Path) -> Iterator[Replicas]:
    """Replicas that are gone after the test, however it ends."""
    replicas = Replicas(plane, namespace, folder)
    try:
        yield replicas
    finally:
        replicas.kill_all()


def seconds_until(what: str, condition: Callable[[], object], timeout: float) -> float:
    """How long it took until the condition held."""
    begin = time.monotonic()
    wait_until(what, condition, timeout)
    return time.monotonic() - begin


def _parsed(line: str) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return {"msg": line, "level": "raw"}
    return parsed
