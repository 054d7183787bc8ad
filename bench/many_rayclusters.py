"""Whether the operator's cost grows in proportion: a thousand RayClusters, the first 300 against the rest."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE
from bed.kwok import Kwok
from bed.ports import free_port
from bench.figures import Figure
from bench.rayclusters import WORKERS, an_operator, bring_up, make_spaces
from bench.resources import peak_mb, rss_mb
from bench.servers import a_client, a_control_plane

FIRST, CLUSTERS = 300, 1000


def run() -> Iterator[Figure]:
    """1,000 clusters of 1 + 3 pods in ten namespaces, in two waves."""
    with a_control_plane() as plane:
        install_ray_crds(plane)
        Kwok(plane).up(nodes=CLUSTERS * (1 + WORKERS) // PODS_PER_NODE + 1)
        with an_operator(plane, free_port()) as operator:
            yield from asyncio.run(_two_waves(plane, operator))


async def _two_waves(plane: ControlPlane, operator: subprocess.Popen[bytes]) -> list[Figure]:
    async with a_client(plane.admin_kubeconfig) as kube:
        await make_spaces(kube)
        first = await bring_up(kube, plane, operator.pid, range(FIRST))
        rest = await bring_up(kube, plane, operator.pid, range(FIRST, CLUSTERS))
    times = (rest.cpu / (CLUSTERS - FIRST)) / (first.cpu / FIRST)
    seconds = f"{first.seconds:.0f} s for the first {FIRST}, {rest.seconds:.0f} s for the rest"
    memory, peak = rss_mb(operator.pid), f"peak {peak_mb(operator.pid):.0f} MB"
    return [
        Figure("operator with 1,000 RayClusters", memory, "MB RSS", 300, "less", peak),
        Figure("operator CPU per RayCluster, the 700 after the first 300", times, "x", 1.2, "less", seconds),
    ]
