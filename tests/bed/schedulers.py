"""What batch schedulers bring to a control plane: CRDs, out of their Go modules, and somebody who binds their pods.

The schedulers themselves are other people's programs. Here a second kube-scheduler answers to their names, and starts
pods one by one, so that operators can be watched without them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.daemons import ControlPlaneSettings
from bed.golang import module_folder
from bed.locks import file_lock
from bed.ports import free_port
from bed.processes import Process

SCHEDULER_NAMES: Final = ("volcano", "yunikorn", "scheduler-plugins-scheduler", "kai-scheduler")
CONFIGURATION: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

_GATES: Final = "--feature-gates=GenericWorkload=true,GangScheduling=true"
WORKLOAD_API: Final = ControlPlaneSettings(
    extra_flags={
        "kube-apiserver": (_GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"),
        "kube-controller-manager": (_GATES,),
        "kube-scheduler": (_GATES,),
    }
)
"""A control plane with Kubernetes' own workload API, whose scheduler starts gangs together."""


class Definition(NamedTuple):
    """A CRD in a Go module."""

    module: str
    version: str
    file: str
    collection: str


DEFINITIONS: Final = (
    Definition(
        "volcano.sh/volcano",
        "v1.15.1",
        "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml",
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    ),
    Definition(
        "sigs.k8s.io/scheduler-plugins",
        "v0.33.5",
        "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    ),
)


def install_scheduler_crds(plane: ControlPlane) -> None:
    """Install them and return once all kinds are served; a plane that serves them is left as it is."""
    for definition in DEFINITIONS:
        if not plane.admin.answers(definition.collection):
            file = module_folder(definition.module, definition.version) / definition.file
            plane.kubectl("apply", "--server-side", f"--filename={file}")
    for definition in DEFINITIONS:
        plane.wait_for(definition.collection)


@pytest.fixture(scope="session")
def scheduler_crds(control_plane: ControlPlane) -> ControlPlane:
    """The control plane of this test run, which knows PodGroups; safe to use in every worker."""
    with file_lock(control_plane.folder / "scheduler-crds.lock"):
        install_scheduler_crds(control_plane)
    return control_plane


@pytest.fixture(scope="session")
def pods_are_bound(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pods of batch schedulers find nodes."""
    process = stand_in(control_plane, tmp_path_factory.mktemp("schedulers"))
    process.start()
    yield
    process.kill()


def stand_in(plane: ControlPlane, folder: Path) -> Process:
    """A kube-scheduler under the names of batch schedulers. Several may run: each pod is bound once."""
    configuration = CONFIGURATION | {
        "clientConnection": {"kubeconfig": str(plane.admin_kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name} for name in SCHEDULER_NAMES],
    }
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command: list[str | Path] = [binary("kube-scheduler"), f"--config={file}", f"--secure-port={free_port()}"]
    return Process(f"batch-scheduler-{uuid.uuid4().hex[:6]}", command, plane.folder)
