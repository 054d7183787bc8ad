"""A thousand RayJobs in HTTPMode at once, some with dead dashboards, and five thousand that have ended long ago."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from bed.binaries import BINARIES, build
from bed.control_plane import ControlPlane
from bed.counted import a_registry
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.figures import Figure
from bench.programs.job_heads import HANGING, JOB_SECONDS
from bench.rayclusters import an_operator, written
from bench.resources import cpu_seconds, peak_mb, rss_mb
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.informer import Informer

JOBS, THEIR_JOBS, FINISHED = 1000, 100, 5000
SPACE = "default"
DEADLINE_SECONDS = 600.0  # the API server alone takes two cores some minutes for a thousand clusters
REST_SECONDS = 30.0
STARTS = 7
OBJECTS = RAY_JOBS.read_as(dict)


class _State(msgspec.Struct, rename="camel"):
    job_deployment_status: str = ""


class Outcome(NamedTuple):
    """What a run of many jobs took an operator."""

    delays: list[float]
    """Seconds from the end of each job to the status that says so."""
    living: int
    """Jobs whose dashboards answer, which all should end."""
    submissions: int
    cpu_percent: float
    peak: float


def run() -> Iterator[Figure]:
    """The dashboards answer in 50 ms, one in twenty hangs; KubeRay's operator does a hundred jobs beside it."""
    with _a_plane(JOBS) as plane:
        ours = _measured(plane, JOBS, _ours())
        name = f"{JOBS:,} RayJobs of {JOB_SECONDS:g} s"
        ended = f"{len(ours.delays)} of {ours.living} ended; {ours.submissions} submissions"
        yield Figure(f"{name}: the end is in the status, slowest", max(ours.delays), "s", 5, "less", ended)
        yield Figure(f"{name}: operator, processor", ours.cpu_percent, "% of a core", 50, "less")
        yield Figure(f"{name}: operator, memory", ours.peak, "MB RSS", 300, "less")
    with _a_plane(THEIR_JOBS) as plane:
        theirs = _measured(plane, THEIR_JOBS, _theirs())
        name = f"KubeRay {KUBERAYS_VERSION}: {THEIR_JOBS} RayJobs"
        ended = f"{len(theirs.delays)} of {theirs.living} ended"
        yield Figure(
            f"{name}: the end is in the status, slowest", max(theirs.delays, default=float("nan")), "s", baseline=ended
        )
        yield Figure(f"{name}: processor", theirs.cpu_percent, "% of a core")
    with _a_plane(0) as plane:
        asyncio.run(_finished(plane))
        yield from _at_rest(plane)
    yield from _submitter()


def _submitter() -> Iterator[Figure]:
    """Until it asks for Ray's health, best of a few: a busy machine adds to both."""
    program = str(Path(sys.executable).parent / "submitter")
    starts: list[tuple[float, float, float]] = []
    with socket.create_server(("127.0.0.1", 0)) as head:
        variables = {
            "RAY_DASHBOARD_ADDRESS": f"127.0.0.1:{head.getsockname()[1]}",
            "RAY_JOB_SUBMISSION_ID": "x",
        }
        for _ in range(STARTS):
            began = time.monotonic()
            with _process([program, "--", "x"], env=variables, output=subprocess.DEVNULL) as process:
                connection, _ = head.accept()
                starts.append((time.monotonic() - began, cpu_seconds(process.pid), rss_mb(process.pid)))
                connection.close()
    seconds, cpu, memory = (min(column) for column in zip(*starts, strict=True))
    about = f"{cpu:.2f} s CPU, {memory:.0f} MB RSS"
    yield Figure("submitter: first request to Ray", seconds, "s", 0.5, "less", about)


@contextlib.contextmanager
def _a_plane(pods: int) -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        install_ray_crds(plane)
        Kwok(plane).up(nodes=pods // PODS_PER_NODE + 1)
        yield plane


def _ours() -> list[str]:
    command = [str(Path(sys.executable).parent / "raykeeper"), "operator", "--metrics-addr=0"]
    return [*command, "--health-probe-bind-address=0", "--enable-leader-election=false"]


def _theirs() -> list[str]:
    build(["kuberay-operator"])
    flags = ["--metrics-addr=0", "--health-probe-bind-address=127.0.0.1:0", "--enable-leader-election=false"]
    return [str(BINARIES["kuberay-operator"].path), *flags, "--reconcile-concurrency=16", "--qps=500", "--burst=1000"]


def _measured(plane: ControlPlane, jobs: int, operator: Sequence[str]) -> Outcome:
    port = free_port()
    hosts = plane.folder / "hosts"
    names = " ".join(f"head-{number}.{SPACE}.svc.cluster.local" for number in range(jobs))
    lines = [f"127.0.0.1 {name}" for name in ["localhost", *names.split()]]
    hosts.write_text("\n".join([*lines, ""]))
    heads = [sys.executable, "-m", "bench.programs.job_heads", str(port)]
    # The operator finds every head at its name, as in a cluster; only root may give it an /etc/hosts of its own.
    named = ["unshare", "-m", "sh", "-c", f'mount --bind "{hosts}" /etc/hosts && exec "$@"', "sh", *operator]
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    log = plane.folder / "operator.log"
    with (
        log.open("wb") as output,
        _process(heads),
        _process(named, env=environment, output=output) as process,
    ):
        wait_until("the heads answer", lambda: _ends(port) is not None)
        return asyncio.run(_live(plane, jobs, port, process.pid))


@contextlib.contextmanager
def _process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, output: IO[bytes] | int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _ends(port: int) -> JSON | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ends", timeout=5) as answer:
            found: JSON = json.loads(answer.read())
            return found
    except OSError:
        return None


async def _live(plane: ControlPlane, jobs: int, port: int, operator: int) -> Outcome:
    """Start all at once and note when the status of each says that it ended."""
    seen: dict[int, float] = {}

    def note(_old: Object | None, new: Object | None) -> None:
        status = msgspec.json.decode(new.status or b"{}", type=_State) if new else _State()
        if new is not None and status.job_deployment_status == "Complete":
            seen.setdefault(int(new.metadata.name.removeprefix("job-")), time.time())

    async with a_client(plane.admin_kubeconfig) as kube:
        informer = Informer(kube, RAY_JOBS, a_registry())
        informer.on_change(note)
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        cpu, began = cpu_seconds(operator), time.monotonic()
        await in_parallel(range(jobs), lambda number: kube.create(OBJECTS, _job(number, port), SPACE))
        living = sum(number % HANGING != 0 for number in range(jobs))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_SECONDS):
                while len(seen) < living:  # noqa: ASYNC110 - a watch fills it
                    await asyncio.sleep(0.2)
        percent = (cpu_seconds(operator) - cpu) / (time.monotonic() - began) * 100
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    told = _ends(port) or {"ends": {}, "submissions": 0}
    delays = [seen[int(number)] - end for number, end in told["ends"].items() if int(number) in seen]
    return Outcome(delays, living, told["submissions"], percent, peak_mb(operator))


def _job(number: int, port: int) -> JSON:
    ports = [{"containerPort": 6379, "name": "gcs-server"}, {"containerPort": port, "name": "dashboard"}]
    container = {"name": "ray", "image": "rayproject/ray:2.60.0", "ports": ports}
    head = {
        "headService": {"metadata": {"name": f"head-{number}"}},
        "template": {"spec": {"containers": [container]}},
    }
    spec = {
        "submissionMode": "HTTPMode",
        "entrypoint": "python job.py",
        "rayClusterSpec": {"rayVersion": "2.60.0", "headGroupSpec": head},
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": f"job-{number}"}, "spec": spec}


async def _finished(plane: ControlPlane) -> None:
    """Five thousand RayJobs that have ended, and whose clusters are gone."""
    status = {
        "jobDeploymentStatus": "Complete",
        "jobStatus": "SUCCEEDED",
        "jobId": "x",
        "rayClusterName": "gone",
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T00:00:30Z",
        "succeeded": 1,
    }
    async with a_client(plane.admin_kubeconfig) as kube:
        await in_parallel(range(FINISHED), lambda number: _ended(kube, number, status))


async def _ended(kube: Kube, number: int, status: JSON) -> None:
    await kube.create(OBJECTS, _job(number, 8265), SPACE)
    key = ObjectKey(SPACE, f"job-{number}")
    await kube.merge_patch(OBJECTS, key, {"status": status}, subresource="status")


def _at_rest(plane: ControlPlane) -> Iterator[Figure]:
    """Once it has looked at each of them."""
    port = free_port()
    with an_operator(plane, port) as process:
        known = written(port)
        while True:
            time.sleep(5)
            known, last = written(port), known
            if known == last:
                break
        before = cpu_seconds(process.pid)
        time.sleep(REST_SECONDS)
        percent = (cpu_seconds(process.pid) - before) / REST_SECONDS * 100
        writes = sum(written(port)) - sum(known)
        name = f"{FINISHED:,} finished RayJobs at rest"
        yield Figure(f"{name}: processor", percent, "% of a core", 0.5, "less", f"{peak_mb(process.pid):.0f} MB RSS")
        yield Figure(f"{name}: writes in {REST_SECONDS:g} s", writes, "writes", 0, "less")
