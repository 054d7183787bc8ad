"""One life of a real cluster for a recording: Ray, a collector beside each node, a folder that is their store."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import raykeeper
from bed.ports import free_port
from bed.rayenv import RAY_VERSION, ray_python
from bed.waiting import wait_until
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess, ended
from support.ray_clusters import TOKEN, RayCluster, RayNode, ray_cluster
from support.stored_sessions import StoredSession

NAMESPACE = "recorded"
JOB = "nightly"
PROGRAMS = Path(__file__).parent / "programs"
DEMO_JOB = Path(raykeeper.__file__).parent / "demo" / "workload" / "failing_job.py"
JOB_SECONDS = 240.0
_QUICK = (  # a recording is over before the intervals of a cluster have passed
    *("--seal-age=500ms", "--idle-seal-age=1s", "--user-log-interval=500ms", "--component-log-interval=30s"),
    *("--poll-interval=1s", "--grace-period=25s", "--metrics-addr=127.0.0.1:0"),
)
_PROMPT = {"RAY_worker_niceness": "0"}  # else whatever the machine does beside it comes before Ray's workers
_OVER = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass
class RecordedLife:
    """A cluster, named after what happens in it."""

    name: str
    cluster: RayCluster
    folder: Path
    apps: Path
    """Where the programs are: a place that says nothing about this machine."""
    _head_sink: int = 0
    _nodes: list[RayNode] = field(default_factory=list)
    _collectors: list[CollectorProcess] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def head(self) -> RayNode:
        return self._nodes[0]

    def start_head(self) -> None:
        """The collector first, as a native sidecar."""
        self._head_sink = free_port()
        self._start_collector("head", self.cluster.head_root, self._head_sink)
        self._nodes.append(self.cluster.start_head(self._head_sink))

    def start_worker(self) -> None:
        """A second node, with the resource `elsewhere`."""
        root, port = self.cluster.new_root(), free_port()
        self._start_collector("worker", root, port)
        self._nodes.append(self.cluster.start_worker(root, port))

    def submit(self, program: str, *, before: str = "", runtime_env: Mapping[str, Any] | None = None) -> None:
        """Hand the program in as the job; `before` is what its command line begins with."""
        self.cluster.submit(JOB, f"{before}python {self.apps / program}.py", runtime_env)

    def run_by_hand(self, program: str) -> None:
        """Run the program as a driver that nobody submitted; fails if it went well."""
        python = str(self.cluster.python)
        assert self.cluster.run_by_hand([python, str(self.apps / f"{program}.py")], self._head_sink) != 0
        wait_until("the driver's end is stored", lambda: self._has_finished_drivers(), JOB_SECONDS)

    def _has_finished_drivers(self) -> bool:
        events = [event for events in self._stored.events().values() for event in events]
        return any("FINISHED" in json.dumps(event) for event in events if "driverJobLifecycleEvent" in event)

    def wait_for_job(self, status: str) -> None:
        """Return once the job is over; fails if it ended otherwise."""

        def is_over() -> str | None:
            found = self.cluster.job_statuses().get(JOB)
            return found if found in _OVER else None

        found = wait_until("the job ends", is_over, JOB_SECONDS)
        assert found == status, f"the job is {found}: {self._driver_log()[-2000:]}"
        wait_until("the collector has seen that", lambda: self._stored_status() == status, JOB_SECONDS)

    def wait_for_output(self, text: str, times: int = 1) -> None:
        """Return once workers or the driver have written the text that often."""

        def has_said() -> bool:
            logs = [
                log for node in self._nodes for log in node.session.glob("logs/*") if log.suffix in (".out", ".log")
            ]
            return sum(log.read_text(errors="replace").count(text) for log in logs) >= times

        wait_until(f"somebody says {text!r}", has_said, JOB_SECONDS)

    def wait_until_stored(self, text: str) -> None:
        """Return once an event with that text is in the store."""

        def is_stored() -> bool:
            stored = self._stored.events()
            return any(text in json.dumps(event) for events in stored.values() for event in events)

        wait_until(f"{text!r} is stored", is_stored, JOB_SECONDS)

    def lose(self, place: int) -> None:
        """A machine is gone: a node and its collector at once."""
        self._collectors[place].kill()
        self._nodes[place].kill()

    def end(self) -> None:
        """Workers first, then the head; then the collectors, which take what is left."""
        for node in reversed(self._nodes):
            node.process.stop(timeout=120.0)
            node.kill()
        for collector in self._collectors:
            if collector.is_alive:
                collector.end()

    @property
    def _stored(self) -> StoredSession:
        return StoredSession(self.store, SessionId(NAMESPACE, self.name, self.head.session.name))

    def _stored_status(self) -> str | None:
        """Of the job, as the collector saw it last."""
        jobs = (self._stored.polled("/api/jobs/") or [[]])[-1]
        return next((job["status"] for job in jobs if job["submission_id"] == JOB), None)

    def _driver_log(self) -> str:
        return (self.head.session / "logs" / f"job-driver-{JOB}.log").read_text(errors="replace")

    def _start_collector(self, role: str, root: Path, port: int) -> None:
        environment = {
            "RAY_TMP_ROOT": str(root),
            "RAY_CLUSTER_NAMESPACE": NAMESPACE,
            "POD_NAME": f"{self.name}-{role}",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_DASHBOARD_ADDRESS": self.cluster.dashboard,
        }
        flags = [f"--role={role}", f"--ray-cluster-name={self.name}", f"--store-url=file://{self.store}"]
        collector = CollectorProcess(
            self.folder / f"collector-{role}.log", [*flags, f"--events-port={port}", *_QUICK], environment
        )
        self._collectors.append(collector)
        collector.start().wait_for("listening for Ray")


@contextmanager
def a_recorded_life(
    name: str, folder: Path, environment: Mapping[str, str], version: str = RAY_VERSION
) -> Iterator[RecordedLife]:
    """A cluster without nodes yet, with all of Ray's libraries; its processes are gone after the block."""
    apps = Path(tempfile.mkdtemp(prefix="rk-app-"))
    try:
        shutil.copytree(PROGRAMS, apps, dirs_exist_ok=True)
        shutil.copy(DEMO_JOB, apps)
        with ray_cluster(folder / "ray", version, {**_PROMPT, **environment}) as cluster:
            cluster.python = _linked_python(ray_python(version, has_libraries=True), apps)
            life = RecordedLife(name, cluster, folder, apps)
            try:
                yield life
            finally:
                with ended(*life._collectors):
                    pass
    finally:
        shutil.rmtree(apps, ignore_errors=True)


def _linked_python(python: Path, apps: Path) -> Path:
    """The same environment and its Python under other paths: tracebacks and warnings then name those."""
    environment, linked = python.parent.parent, apps / "ray"
    (linked / "bin").mkdir(parents=True)
    (apps / "python").symlink_to(python.resolve().parent.parent)
    (linked / "lib").symlink_to(environment / "lib")
    for command in python.parent.iterdir():
        target = apps / "python" / "bin" / python.resolve().name if command.is_symlink() else command
        (linked / "bin" / command.name).symlink_to(target)
    (linked / "pyvenv.cfg").write_text(f"home = {apps / 'python' / 'bin'}\ninclude-system-site-packages = false\n")
    return linked / "bin" / python.name
