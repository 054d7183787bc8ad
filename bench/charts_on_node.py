"""From `helm install` to ready on a real node: the operator at its chart's limits, and a RayCluster with real Ray.

Our charts and KubeRay's own take turns, each with its own operator and image; the better of two runs counts. Ours come
first: then the CRDs are ours, and no Job has to upgrade KubeRay's.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bed.binaries import binary
from bed.golang import module_folder
from bed.kuberay import VERSION
from bed.node.image import one_program_image
from bed.node.real_node import RealNode, node_cluster
from bed.node.settings import RAY_VERSION
from bed.rest import Json
from bed.runs import end_run, new_run
from bed.waiting import wait_until
from bench.figures import Figure
from e2e.own_image import OWN_IMAGE, own_image
from support.helm_releases import OUR_CHARTS, Helm

RUNS = 2
DEADLINE_SECONDS = 300.0
OPERATOR, CLUSTER = "kuberay-operator", "raycluster-kuberay"
KUBERAYS_IMAGE = f"quay.io/kuberay/operator:{VERSION}"
VALUES = (
    f"image.tag={RAY_VERSION},head.rayVersion={RAY_VERSION},head.resources.limits.cpu=2,head.resources.requests.cpu=2,"
    "head.resources.limits.memory=3Gi,head.resources.requests.memory=3Gi,"
    "worker.resources.limits.cpu=2,worker.resources.requests.cpu=2"
)


class Times(NamedTuple):
    """Seconds since `helm install` began."""

    operator: float
    cluster: float


@dataclass(frozen=True)
class Side:
    """One project's charts on the node."""

    helm: Helm
    charts: Path

    def measured(self) -> Times:
        """Install both charts one after the other, and leave nothing of them."""
        operator = self._timed("install", OPERATOR, self.charts / OPERATOR, until=self._has_operator)
        cluster = self._timed(
            "install", "raycluster", self.charts / "ray-cluster", "--set", VALUES, until=self._has_cluster
        )
        self.helm("uninstall", "raycluster")
        wait_until("the RayCluster is gone", lambda: not self._get("/apis/ray.io/v1/rayclusters")["items"], 240.0)
        self.helm("uninstall", OPERATOR)
        wait_until("all pods are gone", lambda: not self._get("/api/v1/namespaces/default/pods")["items"], 240.0)
        return Times(operator, cluster)

    def _timed(self, *words: str | Path, until: Callable[[], bool]) -> float:
        began = time.monotonic()
        self.helm(*words)
        wait_until("it is ready", until, DEADLINE_SECONDS)
        return time.monotonic() - began

    def _has_operator(self) -> bool:
        status = self._get(f"/apis/apps/v1/namespaces/default/deployments/{OPERATOR}").get("status", {})
        return bool(status.get("readyReplicas") == 1)

    def _has_cluster(self) -> bool:
        found = self._get(f"/apis/ray.io/v1/namespaces/default/rayclusters/{CLUSTER}")
        return bool(found.get("status", {}).get("state") == "ready")

    def _get(self, path: str) -> Json:
        return self.helm.plane.admin.get(path)


def run() -> Iterator[Figure]:
    """Ours beside KubeRay's, whose operator is a Go program."""
    with _a_node() as node, tempfile.TemporaryDirectory() as folder:
        helm = Helm(node.plane, Path(folder))
        theirs = Side(helm, module_folder("github.com/ray-project/kuberay", VERSION) / "helm-chart")
        ours = Side(helm, OUR_CHARTS)
        runs: list[tuple[Times, Times]] = [(ours.measured(), theirs.measured()) for _ in range(RUNS)]
    us, them = (Times(*map(min, zip(*side, strict=True))) for side in zip(*runs, strict=True))
    note = f"KubeRay {VERSION}: {them.operator:.1f} s; the probe's first look is after 10 s"
    yield Figure("helm install of the operator to ready, 100m and 512Mi", us.operator, "s", 30.0, "less", note)
    note = f"KubeRay {VERSION}: {them.cluster:.1f} s"
    yield Figure("helm install of ray-cluster to ready, real Ray", us.cluster, "s", them.cluster * 1.05, "less", note)


@contextlib.contextmanager
def _a_node() -> Iterator[RealNode]:
    """A real node with both operators' images."""
    folder = new_run()
    try:
        node = node_cluster(folder / "with-node")
        manager = {"/manager": binary("kuberay-operator")}
        node.import_image(one_program_image(KUBERAYS_IMAGE, manager, entrypoint=["/manager"], user="65532:65532"))
        node.import_image(own_image(OWN_IMAGE))
        yield node
    finally:
        end_run(folder)
