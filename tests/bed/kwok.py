"""Nodes without kubelets: kwok makes their pods run, fail or hang as the annotations in `kwok_stages` say."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from bed.binaries import BINARIES, build
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kwok_stages import kwok_configuration
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json, Refused
from bed.waiting import PATIENCE_SECONDS, wait_until

LEASE_SECONDS = 8  # kwok renews each quarter of it, so well within the shortest grace period used
NODE_RESOURCES = {"cpu": "64", "memory": "256Gi", "pods": "250", "nvidia.com/gpu": "8"}
FAKE = {"kwok.x-k8s.io/node": "fake"}
FAKE_NODE_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
LOST_HOLDER = "bed-lost-node"
NEVER_SECONDS = 10**9


class Kwok:
    """kwok on one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._configuration = plane.folder / "kwok.yaml"
        arguments = [
            f"--kubeconfig={plane.admin_kubeconfig}",
            f"--config={self._configuration}",
            f"--cidr={plane.settings.pod_cidr}",  # only for pods of nodes that were given no range of their own
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            f"--server-address={LOOPBACK}:{free_port()}",
            "--v=WARN",
        ]
        self.process = Process("kwok", [BINARIES["kwok"].path, *arguments], plane.folder)

    def up(self, nodes: int = 4, taints: list[Json] | None = None) -> None:
        """Start kwok with nodes `fake-1` to `fake-NODES`; returns once they are Ready."""
        build(["kwok"])
        self._configuration.write_text(kwok_configuration())
        self.process.start()
        names = [f"fake-{number}" for number in range(1, nodes + 1)]
        for name in names:
            self._register(name, taints=taints)
        for name in names:
            self.wait_for_node(name)

    def down(self) -> None:
        """Stop kwok; the nodes stay and become NotReady."""
        self.process.stop()

    def add_node(self, name: str, *, labels: dict[str, str] | None = None, taints: list[Json] | None = None) -> None:
        """Another node, of this test's own so to say; returns once it is Ready."""
        self._register(name, labels, taints)
        self.wait_for_node(name)

    def remove_node(self, name: str) -> None:
        """Delete a node as a cloud does when the machine is gone; its pods follow by garbage collection."""
        self._plane.admin.delete(f"/api/v1/nodes/{name}")

    def lose_node(self, name: str) -> None:
        """Let a node fall silent; returns once the control plane calls it NotReady (after its grace period)."""
        # kwok leaves a node alone whose lease another holds, and this holder's neither runs out nor is renewed.
        taken = {"holderIdentity": LOST_HOLDER, "leaseDurationSeconds": NEVER_SECONDS, "renewTime": _micro_time()}
        self._plane.admin.patch(_lease(name), {"spec": taken})
        # On a busy machine the node may be late, and so NotReady, already: kwok must have noticed its loss as well.
        # It does when it renews, each quarter of the lease, and there it may be late too.
        kwok_knows = time.monotonic() + 2 * LEASE_SECONDS

        def is_lost() -> bool:
            return time.monotonic() > kwok_knows and not self.is_ready(name)

        wait_until(f"loss of node {name}", is_lost, self._wait)

    def return_node(self, name: str) -> None:
        """Bring a lost node back; returns once it is Ready again and looks after its pods."""
        self._plane.admin.delete(_lease(name))
        self.wait_for_node(name)
        # A kubelet goes through all its pods when it comes back; kwok waits for a change to each.
        for pod in self._plane.admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            self._plane.admin.patch(path, {"metadata": {"annotations": {"bed/node-returned": _micro_time()}}})

    def is_ready(self, name: str) -> bool:
        """Whether the control plane calls the node Ready."""
        conditions = self._plane.admin.get(f"/api/v1/nodes/{name}")["status"].get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def wait_for_node(self, name: str) -> None:
        """Return once the node is Ready."""
        wait_until(f"node {name} is Ready", lambda: self.is_ready(name), self._wait)

    @property
    def _wait(self) -> float:
        """Seconds in which a node becomes Ready or NotReady, generously."""
        return self._plane.settings.node_grace_seconds + PATIENCE_SECONDS

    def _register(self, name: str, labels: dict[str, str] | None = None, taints: list[Json] | None = None) -> None:
        try:
            self._plane.admin.post("/api/v1/nodes", desired_node(name, labels or {}, taints or []))
        except Refused as refused:
            if refused.status != 409:  # there since an earlier start
                raise


def desired_node(name: str, labels: dict[str, str], taints: list[Json]) -> Json:
    """A big node with GPUs that kwok takes for its own."""
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "metadata": {"name": name, "labels": {"type": "kwok"} | standard | labels, "annotations": FAKE},
        "spec": {"taints": taints},
        "status": {"capacity": NODE_RESOURCES, "allocatable": NODE_RESOURCES},
    }


def _lease(node: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
