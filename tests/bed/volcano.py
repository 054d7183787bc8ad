"""Volcano on a control plane: its CRDs, its scheduler and its controllers, run as processes.

Its webhooks are left out: they fill in what users of its own Jobs leave out, and PodGroups are not among that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import yaml

from bed.binaries import BINARIES, binary
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.golang import module_folder
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json, Rest
from bed.waiting import wait_until

SCHEDULER, CONTROLLERS = "volcano-scheduler", "volcano-controller-manager"
VERSION = BINARIES[SCHEDULER].version
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
START_SECONDS = 120.0
_CONFIGURATION = {
    # Volcano's own default, with `reclaim`, and without `overcommit`, which lets nobody queue for what is in use.
    "actions": "enqueue, allocate, reclaim, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "drf", "enablePreemptable": False},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
            ]
        },
    ],
}


class Volcano:
    """One Volcano."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._conf = plane.folder / "volcano-scheduler.conf"
        self._healthz = {name: free_port() for name in (SCHEDULER, CONTROLLERS)}
        scheduling = (f"--scheduler-conf={self._conf}", "--schedule-period=300ms", f"--cache-dump-dir={plane.folder}")
        self._processes = {
            SCHEDULER: self._process(SCHEDULER, *scheduling),
            CONTROLLERS: self._process(CONTROLLERS, "--controllers=queue-controller,pg-controller"),
        }

    def up(self) -> None:
        """Install it and return once its default queue is open."""
        self._conf.write_text(yaml.safe_dump(_CONFIGURATION))
        folder = module_folder("volcano.sh/volcano", VERSION) / "config" / "crd"
        for file in sorted(folder.glob("*/bases/*.yaml")):
            self._plane.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={file}")
        self._plane.wait_for(QUEUES)
        for name, process in self._processes.items():
            process.start()
            wait_until(f"{name} is ready (log: {process.log_file})", partial(self._is_ready, name), START_SECONDS)
        self.wait_for_queue("default")

    def add_queue(self, name: str, weight: int) -> None:
        """A queue whose share of the nodes is by its weight; returns once it is open."""
        body: Json = {"metadata": {"name": name}, "spec": {"weight": weight, "reclaimable": True}}
        kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        self._plane.admin.post(QUEUES, kind | body)
        self.wait_for_queue(name)

    def wait_for_queue(self, name: str) -> None:
        def is_open() -> bool:
            path = f"{QUEUES}/{name}"
            answer = self._plane.admin.get(path) if self._plane.admin.answers(path) else {}
            return bool(answer.get("status", {}).get("state") == "Open")

        wait_until(f"queue {name} is open", is_open, START_SECONDS)

    def _is_ready(self, name: str) -> bool:
        return Rest(f"http://{LOOPBACK}:{self._healthz[name]}").answers("/healthz")

    def down(self) -> None:
        for process in self._processes.values():
            process.kill()

    def _process(self, name: str, *flags: str) -> Process:
        common = (
            f"--kubeconfig={self._plane.admin_kubeconfig}",
            "--leader-elect=false",
            "--enable-healthz=true",
            f"--healthz-address={LOOPBACK}:{self._healthz[name]}",
            f"--listen-address={LOOPBACK}:{free_port()}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )
        return Process(name, [BINARIES[name].path, *common, *flags], self._plane.folder)


@contextmanager
def volcano_on(plane: ControlPlane) -> Iterator[Volcano]:
    """Volcano until the end of the block; what it installed stays in the control plane, which is the caller's own."""
    for name in (SCHEDULER, CONTROLLERS):
        binary(name)
    volcano = Volcano(plane)
    try:
        volcano.up()
        yield volcano
    finally:
        volcano.down()
