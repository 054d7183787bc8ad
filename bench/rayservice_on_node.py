"""A blue/green upgrade with real Ray Serve on a real node under fifty requests a second, by our operator and KubeRay's.

Once as it is, and once with the head of the old cluster killed half-way.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace, remove_namespace
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on
from bed.node.real_node import node_cluster
from bed.ports import free_port
from bed.runs import end_run, new_run
from bench.figures import Figure
from bench.rayclusters import an_operator
from e2e.real_services import RATE, Counts, RealService, a_cluster, programs_in
from support.kube_clients import connected
from support.ray_serve_head import ServeHeads

RUNS = 2
PROXY = "--use-kubernetes-proxy"
"""Both run beside the node, where the names of Services mean nothing."""
OURS, THEIRS = "ours", f"KubeRay {KUBERAYS_VERSION}"
URL = "http://web-serve-svc:8000/"
WHAT = {False: "upgrade", True: "upgrade with the old head killed"}
AFTER = 10 * RATE
"""Requests that are looked at after the switch."""


@dataclass(frozen=True)
class Upgrade:
    """What came of one."""

    seconds: float
    """From the edit to the moment from which on the new cluster answered everything."""
    counts: Counts
    """Of the requests from the edit to some seconds after that."""


def run() -> Iterator[Figure]:
    """The operators take turns; the better of two runs counts."""
    with _a_node() as plane:
        found: dict[tuple[str, bool], list[Upgrade]] = {}
        for turn in range(RUNS):
            for name in (THEIRS, OURS):
                for is_killed in (False, True):
                    with _operated(plane, name):
                        upgrade = asyncio.run(_measured(plane, f"upgrade-{turn}", is_killed=is_killed))
                    print(f"{name}, {WHAT[is_killed]}: {upgrade.seconds:.1f} s; {upgrade.counts}")
                    found.setdefault((name, is_killed), []).append(upgrade)
    for is_killed, what in WHAT.items():
        ours, theirs = (min(found[name, is_killed], key=lambda one: one.seconds) for name in (OURS, THEIRS))
        name = f"RayService on the real node, {what}"
        beside = f"{THEIRS}: {theirs.seconds:.1f} s"
        yield Figure(f"{name}: edit to switch", ours.seconds, "s", theirs.seconds, "less", beside)
        most, mosts = (max(one.counts.failed.total() for one in found[name, is_killed]) for name in (OURS, THEIRS))
        bar = mosts if is_killed else 0
        about = f"of {ours.counts.ended}; {THEIRS}: {mosts} of {theirs.counts.ended}"
        yield Figure(f"{name}: failed requests, worst of {RUNS}", most, "requests", bar, "less", about)


@contextlib.contextmanager
def _a_node() -> Iterator[ControlPlane]:
    folder = new_run()
    try:
        node = node_cluster(folder / "with-node")
        install_ray_crds(node.plane)
        yield node.plane
    finally:
        end_run(folder)


@contextlib.contextmanager
def _operated(plane: ControlPlane, name: str) -> Iterator[None]:
    if name == OURS:
        with an_operator(plane, free_port(), PROXY):
            yield
    else:
        with kuberay_on(plane) as kuberay:
            kuberay.start(PROXY, elected=False)
            yield


async def _measured(plane: ControlPlane, namespace: str, *, is_killed: bool) -> Upgrade:
    async with _a_service(plane, namespace) as service:
        await service.create("hello", rayClusterConfig=a_cluster("one"))
        old = await service.serves()
        await service.ask(URL)
        await service.answers_with("hello from one")
        before, edited = await service.counts(), time.monotonic()
        await service.patch(rayClusterConfig=a_cluster("two"))
        if is_killed:
            await service.has_pending()
            await service.delete_head(old)
        await service.answers_with("hello from two")
        seconds = time.monotonic() - edited - 1  # the second in which nothing else was answered
        await service.ended_since(await service.counts(), AFTER)
        return Upgrade(seconds, await service.counts() - before)


@contextlib.asynccontextmanager
async def _a_service(plane: ControlPlane, namespace: str) -> AsyncIterator[RealService]:
    make_namespace(plane, namespace)
    programs_in(plane, namespace)
    try:
        async with connected(plane.admin_kubeconfig) as kube:
            yield RealService(plane, kube, namespace, ServeHeads({}))
    finally:
        remove_namespace(plane, namespace)
