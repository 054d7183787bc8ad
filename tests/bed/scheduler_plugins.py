"""scheduler-plugins on a control plane: its CRDs, its scheduler with coscheduling, and its controller, as processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from bed.binaries import BINARIES, binary
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.golang import module_folder
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Rest
from bed.schedulers import CONFIGURATION
from bed.waiting import wait_until

SCHEDULER, CONTROLLER = "scheduler-plugins-scheduler", "scheduler-plugins-controller"
VERSION = BINARIES[SCHEDULER].version
START_SECONDS = 120.0


@contextmanager
def scheduler_plugins_on(plane: ControlPlane) -> Iterator[None]:
    """Until the end of the block; what was installed stays in the control plane, which is the caller's own."""
    folder = module_folder("sigs.k8s.io/scheduler-plugins", VERSION) / "config" / "crd" / "bases"
    for file in sorted(folder.glob("scheduling.x-k8s.io_*.yaml")):
        plane.kubectl("apply", "--server-side", f"--filename={file}")
    plane.wait_for("/apis/scheduling.x-k8s.io/v1alpha1/podgroups")
    probe = free_port()
    processes = [_scheduler(plane), _controller(plane, probe)]
    for process in processes:
        process.start()
    try:
        ready = Rest(f"http://{LOOPBACK}:{probe}")
        wait_until(f"{CONTROLLER} is ready", lambda: ready.answers("/healthz"), START_SECONDS)
        yield
    finally:
        for process in processes:
            process.kill()


def _scheduler(plane: ControlPlane) -> Process:
    """As its own manifests have it, under the name that its chart gives it."""
    points = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    arguments = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}]
    configuration = CONFIGURATION | {
        "clientConnection": {"kubeconfig": str(plane.admin_kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER, "plugins": points, "pluginConfig": arguments}],
    }
    file = plane.folder / f"{SCHEDULER}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    # Coscheduling does not ask to be told of pods that go: a gang that was refused is tried again after this time only.
    again = "--pod-max-in-unschedulable-pods-duration=5s"
    flags = (f"--config={file}", f"--secure-port={free_port()}", again)
    return Process(SCHEDULER, [binary(SCHEDULER), *flags], plane.folder)


def _controller(plane: ControlPlane, probe: int) -> Process:
    flags = (f"--metricsAddr={LOOPBACK}:{free_port()}", f"--probeAddr={LOOPBACK}:{probe}", "--qps=500", "--burst=1000")
    variables = {"KUBECONFIG": str(plane.admin_kubeconfig)}
    return Process(CONTROLLER, [binary(CONTROLLER), *flags, "--enableLeaderElection=false"], plane.folder, variables)
