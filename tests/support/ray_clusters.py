"""Real Ray, a head and workers on this machine, each with a folder and an event sink of its own as in pods.

A worker sees its own folder under the head's path, in a mount namespace: Ray 2.52 lets no worker choose another.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.ports import free_port
from bed.processes import Process, kill_all
from bed.rayenv import RAY_VERSION, ray_python
from bed.waiting import wait_until

TOKEN = "t0ken-of-this-test"  # a token of Ray's must be long enough to be one
START_SECONDS = 240.0  # Ray needs 15 s, and much longer where other tests use the cores
PATIENT_START = {"RAY_raylet_start_wait_time_s": "100", "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "240"}
"""Ray's own patience: half a minute for drivers to find their raylet, and one for the dashboard."""
HEAD_ADDRESS = "127.0.0.1"
# A driver finds its raylet by its node's address. Where two nodes share one, Ray 2.52 takes either: it then asks the
# worker's raylet for leases, is sent on to the head's, takes that for the one it asked, and asks for ever.
WORKER_ADDRESS = "127.0.0.2"
_PUBLISHED = re.compile(r"^ray_aggregator_agent_published_events_total(?:\{[^\n]*\})?\s+([0-9.eE+]+)", re.MULTILINE)
_EVENT_TYPES = ",".join(  # Ray 2.52 does not know ALL
    f"{name}_EVENT"
    for name in (
        *("TASK_DEFINITION", "TASK_LIFECYCLE", "ACTOR_TASK_DEFINITION", "TASK_PROFILE"),
        *("DRIVER_JOB_DEFINITION", "DRIVER_JOB_LIFECYCLE", "ACTOR_DEFINITION", "ACTOR_LIFECYCLE"),
        *("NODE_DEFINITION", "NODE_LIFECYCLE", "WORKER_DEFINITION", "WORKER_LIFECYCLE"),
    )
)


@dataclass(frozen=True)
class RayNode:
    """One Ray node."""

    process: Process
    root: Path
    """Its folder of sessions, as its collector sees it."""
    metrics_port: int

    @property
    def session(self) -> Path:
        """By name alone: the link of a worker leads to the path that only its own namespace has."""
        return self.root / (self.root / "session_latest").readlink().name

    def kill(self) -> None:
        """End all its processes at once, as a lost machine does."""
        kill_all(self.process.folder)

    def node_ids(self) -> list[str]:
        """Of every raylet that lived here, by their own logs, oldest first."""
        logs = sorted(self.session.glob("logs/raylet*.out"), key=lambda log: log.stat().st_ctime_ns)
        found = [re.search(r"Setting node ID node_id=([0-9a-f]{56})", log.read_text(errors="replace")) for log in logs]
        return [match[1] for match in found if match]

    def published_events(self) -> int | None:
        """What its agent says that the sink took; None while it does not say."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        found = _PUBLISHED.findall(text)
        return round(sum(map(float, found))) if found else None


class RayCluster:
    """Starts nodes; what it started is gone after the `with` block of `ray_cluster`."""

    def __init__(self, folder: Path, version: str, environment: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.environment = dict(environment or {})
        """Variables of Ray's own, beyond those that every cluster here has."""
        self.python = ray_python(version)
        self.dashboard = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._gcs_port = free_port()
        self._head_root = _short_folder()
        self._roots = [self._head_root]

    @property
    def head_root(self) -> Path:
        return self._head_root

    def new_root(self) -> Path:
        """A folder for another node."""
        self._roots.append(_short_folder())
        return self._roots[-1]

    def start_head(self, sink_port: int, enter: Sequence[str] = ()) -> RayNode:
        """Return once it has written its ports; what it is started by may bring it elsewhere first."""
        dashboard_port = self.dashboard.rpartition(":")[2]
        flags = ["--head", f"--port={self._gcs_port}", f"--dashboard-port={dashboard_port}", "--num-cpus=2"]
        flags += [f"--temp-dir={self._head_root}", f"--ray-client-server-port={free_port()}"]
        return self._start("head", self._head_root, flags, sink_port, list(enter), HEAD_ADDRESS)

    def start_worker(self, root: Path, sink_port: int, life: int = 0) -> RayNode:
        """A node with the resource `elsewhere`. Started again on the same folder, it is another one there."""
        # A worker asks the GCS for its head, which may have said its id before it is known there.
        wait_until("Ray's head is registered", self._has_nodes, START_SECONDS)
        script = 'mount --bind "$0" "$1" && shift && exec "$@"'
        unshare = shutil.which("unshare") or "unshare"
        enter = [unshare, "--mount", "--propagation=private", "sh", "-c", script, str(root), str(self._head_root)]
        flags = [f"--address=127.0.0.1:{self._gcs_port}", "--num-cpus=1", '--resources={"elsewhere": 100}']
        return self._start(f"worker-{life}", root, flags, sink_port, enter, WORKER_ADDRESS)

    def submit(self, name: str, entrypoint: str, runtime_env: Mapping[str, Any] | None = None) -> None:
        """Start a submission job of that id."""
        body = {"submission_id": name, "entrypoint": entrypoint, "runtime_env": dict(runtime_env or {})}

        def is_taken() -> bool:
            """A busy dashboard may take the job, answer too late, and then refuse it as one that it has."""
            return bool(self._ask("/api/jobs/", body)) or name in self.job_statuses()

        wait_until(f"Ray takes the job {name}", is_taken, START_SECONDS)

    def run_by_hand(self, command: list[str], sink_port: int, seconds: float = START_SECONDS) -> int:
        """A driver that nobody submitted, as somebody starts it inside of the head's pod; its exit code."""
        environment = os.environ | self._environment(sink_port) | {"RAY_ADDRESS": f"{HEAD_ADDRESS}:{self._gcs_port}"}
        return subprocess.run(command, env=environment, timeout=seconds, capture_output=True, check=False).returncode

    def stop_job(self, name: str) -> None:
        """As `ray job stop` does."""
        wait_until(f"Ray stops the job {name}", lambda: self._ask(f"/api/jobs/{name}/stop", {}), START_SECONDS)

    def job_statuses(self) -> dict[str, str]:
        jobs = self._ask("/api/jobs/") or []
        return {job["submission_id"]: job["status"] for job in jobs if job["submission_id"]}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """What the state API says of the attempts at tasks of that name."""
        filters = f"filter_keys=name&filter_predicates=%3D&filter_values={name}"
        answer = self._ask(f"/api/v0/tasks?detail=1&limit=10000&{filters}")
        return answer["data"]["result"]["result"] if answer else []

    def _has_nodes(self) -> bool:
        answer = self._ask("/api/v0/nodes?limit=100")
        found = answer["data"]["result"]["result"] if answer else []
        return any(node["state"] == "ALIVE" for node in found)

    def take_down(self) -> None:
        kill_all(self._folder)
        for root in self._roots:
            shutil.rmtree(root, ignore_errors=True)

    def _start(
        self, name: str, root: Path, flags: list[str], sink_port: int, enter: list[str], address: str
    ) -> RayNode:
        metrics_port = free_port()
        command = [
            *enter,
            *(str(self.python), str(self.python.with_name("ray")), "start", "--block", "--disable-usage-stats"),
            *(f"--node-ip-address={address}", "--object-store-memory=100000000"),
            *(f"--metrics-export-port={metrics_port}", f"--dashboard-agent-listen-port={free_port()}"),
            *flags,
        ]
        process = Process(name, command, self._folder / name, self._environment(sink_port))
        node = RayNode(process, root, metrics_port)
        known = set(node.node_ids()) if (root / "session_latest").is_symlink() else set()
        start_ray(process, lambda: _has_started(node, known))
        return node

    def _environment(self, sink_port: int) -> dict[str, str]:
        return {
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_enable_ray_event": "1",
            "RAY_enable_core_worker_ray_event_to_aggregator": "1",
            "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR": f"http://localhost:{sink_port}/v1/events",
            "RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES": _EVENT_TYPES,
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "1",
            "RAY_metrics_report_interval_ms": "500",
            **PATIENT_START,
            **self.environment,
        }

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The dashboard's JSON answer to a GET, or to a POST of a body; None while it gives none."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.dashboard + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except OSError:
            return None


@contextmanager
def ray_cluster(
    folder: Path, version: str = RAY_VERSION, environment: Mapping[str, str] | None = None
) -> Iterator[RayCluster]:
    """A cluster without nodes yet; its processes' pids and logs are in `folder`."""
    cluster = RayCluster(folder, version, environment)
    try:
        yield cluster
    finally:
        cluster.take_down()


def start_ray(process: Process, has_started: Callable[[], bool]) -> None:
    """Return once `ray start` says that Ray runs, and it has started as far as the caller can see."""
    began = process.log_file.stat().st_size if process.log_file.exists() else 0
    process.start()

    def is_settled() -> bool:
        said = process.log_file.read_bytes()[began:]
        return not process.alive or (b"Ray runtime started." in said and has_started())

    wait_until(f"Ray's {process.name} is up", is_settled, START_SECONDS)
    assert process.alive, f"ray did not start: {process.last_lines()}"


def _short_folder() -> Path:
    """Short, because the names of Ray's sockets below it must fit into 107 bytes."""
    return Path(tempfile.mkdtemp(prefix="rk-"))


def _has_started(node: RayNode, known_nodes: set[str]) -> bool:
    """A node that is started again has another id, and a head another session too."""
    return (node.root / "session_latest").is_symlink() and bool(set(node.node_ids()) - known_nodes)
