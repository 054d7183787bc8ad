"""The operator as a process at the chart's limits: how soon it is ready, what a restart costs, and fifty namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.cpu_limit import cpu_limit
from bench.figures import Figure
from bench.rayclusters import CLUSTERS, PODS_IN_ALL, an_operator, bring_up, make_spaces
from bench.resources import cpu_seconds, peak_mb, rss_mb
from bench.servers import a_client, a_control_plane

STARTS = 5
CHART_MILLICORES, CHART_MEGABYTES = 100, 268
"""The limits of KubeRay's chart: 100m and 256Mi."""
WATCHING_MILLICORES = 500
NAMESPACES = 50
SETTLE_SECONDS = 10.0
IMPORT = """
import resource
from raykeeper.cli.programs import importing
with importing():
    import raykeeper.operator.main
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""


def run() -> Iterator[Figure]:
    """Imports; starts over 300 steady clusters, without a limit and at 100m; 50 namespaces with two kinds of roles."""
    imports = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(STARTS)]
    slowest = f"slowest of {STARTS}: {max(imports):.2f} s"
    yield Figure("operator: importing it", min(imports), "s CPU", 0.5, "less", slowest)
    with a_control_plane() as plane:
        install_ray_crds(plane)
        yield from _idle(plane)
        yield from _many_namespaces(plane)
        Kwok(plane).up(nodes=PODS_IN_ALL // PODS_PER_NODE + 1)
        asyncio.run(_steady_clusters(plane))
        yield from _starts(plane)


async def _steady_clusters(plane: ControlPlane) -> None:
    with an_operator(plane, free_port()) as operator:
        async with a_client(plane.admin_kubeconfig) as kube:
            await make_spaces(kube)
            await bring_up(kube, plane, operator.pid, range(CLUSTERS))


class _Start(NamedTuple):
    process: subprocess.Popen[bytes]
    seconds: float
    """Until it was ready and led."""


@contextlib.contextmanager
def _started(kubeconfig: Path, log: Path, *flags: str, members: Path | None = None) -> Iterator[_Start]:
    """An operator that is ready and leads, in the cgroup whose members are listed in that file."""
    port = free_port()
    command = [str(Path(sys.executable).parent / "raykeeper"), "operator", "--metrics-addr=0"]
    addresses = [f"--health-probe-bind-address=127.0.0.1:{port}", "--leader-election-namespace=default"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    began = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(_limited([*command, *addresses, *flags], members), env=environment, stdout=output) as process,
    ):
        try:
            wait_until("it is ready", lambda: b'"leading"' in log.read_bytes() and _is_ready(port), timeout=180)
            yield _Start(process, time.monotonic() - began)
        finally:
            process.terminate()


def _limited(command: list[str], members: Path | None) -> list[str]:
    """The command as one that first joins the cgroup."""
    return ["sh", "-c", f'echo $$ > "{members}"; exec "$@"', "sh", *command] if members else command


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _idle(plane: ControlPlane) -> Iterator[Figure]:
    with _started(plane.admin_kubeconfig, plane.folder / "operator-idle.log") as start:
        time.sleep(SETTLE_SECONDS)
        yield Figure("operator without clusters", rss_mb(start.process.pid), "MB RSS", 60, "less")


def _starts(plane: ControlPlane) -> Iterator[Figure]:
    with _started(plane.admin_kubeconfig, plane.folder / "operator-free.log") as start:
        time.sleep(SETTLE_SECONDS)
        cpu = cpu_seconds(start.process.pid)
        ready = f"ready and leading after {start.seconds:.1f} s"
        yield Figure("operator started over 300 steady clusters", cpu, "s CPU", 1.0, "less", ready)
    with cpu_limit(CHART_MILLICORES) as members:
        if members is None:
            return  # said by the figure's absence: only root with a writable cgroup can limit
        log = plane.folder / "operator-limited.log"
        with _started(plane.admin_kubeconfig, log, members=members) as start:
            peak = peak_mb(start.process.pid)
            name = f"operator over 300 clusters ready and leading, {CHART_MILLICORES}m"
            yield Figure(name, start.seconds, "s", 30.0, "less")
            yield Figure("operator over 300 clusters, peak of the start", peak, "MB RSS", CHART_MEGABYTES, "less")


def _many_namespaces(plane: ControlPlane) -> Iterator[Figure]:
    names = [f"team-{number}" for number in range(NAMESPACES)]
    for name in names:
        plane.admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    watched = f"--watch-namespace={','.join(names)}"
    accounts = {"a role for all": plane.admin_kubeconfig, "a role in each": _with_roles_in(plane, names)}
    for rights, kubeconfig in accounts.items():
        log = plane.folder / f"operator-{kubeconfig.stem}.log"
        with cpu_limit(WATCHING_MILLICORES) as members, _started(kubeconfig, log, watched, members=members) as start:
            time.sleep(SETTLE_SECONDS)
            pid = start.process.pid
            connections = sum(one.status == psutil.CONN_ESTABLISHED for one in psutil.Process(pid).net_connections())
            memory = f"{rss_mb(pid):.0f} MB RSS"
            limit = f", {WATCHING_MILLICORES}m" if members else ""
            about = f"operator for {NAMESPACES} namespaces, {rights}"
            yield Figure(f"{about}: ready{limit}", start.seconds, "s", 60.0, "less")
            yield Figure(f"{about}: connections", connections, "", None, "less", memory)


def _with_roles_in(plane: ControlPlane, names: list[str]) -> Path:
    """A kubeconfig of one who may do everything in these namespaces and in the lease's, and nothing elsewhere."""
    for name in [*names, "default"]:
        role = ("--clusterrole=cluster-admin", "--user=namespaced")
        plane.kubectl("create", "rolebinding", "namespaced", "-n", name, *role)
    return plane.kubeconfig("namespaced", ())
