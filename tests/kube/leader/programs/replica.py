"""One replica of an operator that does nothing but create numbered ConfigMaps while it leads, as a real process.

Every ConfigMap names its writer, so a test reads from the API server who wrote what and when. One line of JSON per log
entry on stdout; the reason for its end is the last one.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.errors import RaykeeperError
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.installations import LEASE_NAME, Ours, lease_annotations, parse_coverage
from raykeeper.kube.leader.lease import ElectionSettings
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import CONFIG_MAPS
from raykeeper.logs import Log, LogSettings, set_up_logs

log = Log("replica")


@dataclass(frozen=True)
class Settings:
    kubeconfig: Path
    identity: str
    namespace: str
    objects: str
    watch: str
    election: ElectionSettings
    qps: float
    burst: int
    writers: int
    pause: float


class Replica:
    def __init__(self, kube: Kube, settings: Settings, metrics: KubeMetrics) -> None:
        clock = SystemClock()
        covers = parse_coverage(settings.watch)
        self._settings = settings
        self._elector = LeaderElector(
            kube,
            ObjectKey(settings.namespace, LEASE_NAME),
            settings.identity,
            clock=clock,
            metrics=metrics,
            settings=settings.election,
            annotations=lease_annotations(covers, settings.identity, "0.1.0", "a-pod"),
        )
        self._lookout = Lookout(kube, Ours(settings.namespace, covers, settings.identity), clock)
        self._kube = kube.with_fence(self._elector.fence)
        self._numbers = itertools.count()

    async def run(self) -> None:
        await self._lookout.ensure_alone()
        await self._elector.run(self._lead)

    async def _lead(self) -> None:
        await self._lookout.ensure_alone()
        log.info("working")
        async with asyncio.TaskGroup() as writers:
            for _ in range(self._settings.writers):
                writers.create_task(self._write_for_ever())

    async def _write_for_ever(self) -> None:
        while True:
            name = f"{self._settings.identity}-{next(self._numbers)}"
            body = {"metadata": {"name": name, "labels": {"writer": self._settings.identity}}}
            await self._kube.create(CONFIG_MAPS, body, self._settings.objects)
            await asyncio.sleep(self._settings.pause)


async def run(settings: Settings) -> None:
    """Be a replica until SIGTERM."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    metrics = KubeMetrics(CollectorRegistry())
    connection = await load_connection(settings.kubeconfig)
    async with Kube(connection, metrics=metrics, qps=settings.qps, burst=settings.burst) as kube:
        await Replica(kube, settings, metrics).run()


def parse_arguments() -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("identity")
    parser.add_argument("namespace", help="where the Lease is")
    parser.add_argument("--objects", required=True, help="where ConfigMaps are created")
    parser.add_argument("--watch", default="*")
    parser.add_argument("--election", default="15,10,2", help="lease duration, renew deadline, retry period")
    parser.add_argument("--qps", type=float, default=500.0)
    parser.add_argument("--burst", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.1)
    arguments = vars(parser.parse_args())
    duration, deadline, retry = arguments.pop("election").split(",")
    return Settings(election=ElectionSettings(int(duration), float(deadline), float(retry)), **arguments)


def main() -> None:
    set_up_logs(LogSettings())
    try:
        asyncio.run(run(parse_arguments()))
    except asyncio.CancelledError:
        log.info("stopped")
    except RaykeeperError as exc:
        log.error(str(exc), kind=type(exc).__name__)  # noqa: TRY400 - one clear line, no traceback
        sys.exit(1)


if __name__ == "__main__":
    main()
