"""How long plain pods take on this machine: the unit in which later benchmarks give their times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bed.floor import PODS_PER_NODE, measure_floor
from bed.kwok import Kwok
from bench.figures import Figure
from bench.servers import a_control_plane

PODS_MADE = 1200


def run() -> Iterator[Figure]:
    """Plain pods on fake nodes, straight through the API, until Running."""
    with a_control_plane() as plane:
        kwok = Kwok(plane)
        kwok.up(nodes=PODS_MADE // PODS_PER_NODE)
        try:
            floor = asyncio.run(measure_floor(plane.admin_kubeconfig, PODS_MADE))
        finally:
            kwok.down()
    baseline = f"creating them {floor.created_seconds:.1f} s"
    yield Figure("bed floor: 1,200 plain pods Running", floor.running_seconds, "s", None, "less", baseline)
