"""A namespace of a real API server in which Ray clusters live and die, and an observer with the documented rights."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.rest import Json, Refused
from bed.waiting import PATIENCE_SECONDS
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.history.observer.closer import ClosingPace
from raykeeper.history.observer.leader import Leading, lease_name
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.observer import ObserverServices
from raykeeper.history.observer.outbox import OutboxLimits
from raykeeper.history.store.kube_facts import KubeFacts, read_facts
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.layout.keys import ClusterId, SessionId
from raykeeper.layout.records import ClosedRecord
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.kube_clients import connected
from support.observer_scene import closing_of, owner_reference
from support.raycluster_scene import a_raycluster

DOCUMENTED = Path(__file__).parent.parent.parent / "docs" / "kubernetes-facts.md"
LIMITS = OutboxLimits(settle_seconds=0.2, burst=100)
PACE = ClosingPace(look_seconds=0.1, settle_seconds=0.5, head_seconds=0.5)
NOBODY = "nobody"
"""A scheduler that is not there."""
COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "history", "--bind=127.0.0.1:0", "--kubernetes-facts=on")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def documented_rules() -> list[Json]:
    """The rules of all roles in the documentation."""
    block = DOCUMENTED.read_text().split("```yaml\n")[1].split("```")[0]
    return [rule for role in yaml.safe_load_all(block) for rule in role["rules"]]


class KubernetesScene:
    """What people and kubelets do in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def observers_kubeconfig(self) -> Path:
        """Of a service account that has the documented rights in this namespace and no others."""
        self.give_rights()
        return self.plane.kubeconfig("observer", token=self.plane.token(self.namespace), namespace=self.namespace)

    def give_rights(self) -> None:
        """The documented ones, to the namespace's service account."""
        account = {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "observer"}
        place = f"{RBAC}/namespaces/{self.namespace}"
        self.plane.admin.post(f"{place}/roles", {"metadata": {"name": "observer"}, "rules": documented_rules()})
        binding = {"metadata": {"name": "observer"}, "roleRef": reference, "subjects": [account]}
        self.plane.admin.post(f"{place}/rolebindings", binding)
        # An observer that is refused looks again after five minutes.
        user = f"system:serviceaccount:{self.namespace}:default"
        self.plane.wait_for_right(user, "get", "leases", "coordination.k8s.io", self.namespace)

    def make_job(self, name: str) -> Json:
        """A RayJob, as others refer to it."""
        cluster = a_raycluster()["spec"]
        body = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}}
        spec = {"entrypoint": "true", "rayClusterSpec": cluster}
        made = self.plane.admin.post(self._jobs, {**body, "spec": spec})
        return {"kind": "RayJob", "name": name, "uid": made["metadata"]["uid"]}

    def set_job_status(self, name: str, **status: Any) -> None:
        """Say what an operator would."""
        self.plane.admin.patch(f"{self._jobs}/{name}/status", {"status": status})

    def delete_job(self, name: str) -> None:
        self.plane.admin.delete(f"{self._jobs}/{name}")

    def make_cluster(self, name: str, owner: Mapping[str, Any] | None = None) -> ClusterId:
        body = a_raycluster(name=name)
        if owner:
            body["metadata"]["ownerReferences"] = [{"apiVersion": "ray.io/v1", "controller": True, **owner}]
        made = self.plane.admin.post(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters", body)
        return ClusterId(self.namespace, name, made["metadata"]["uid"])

    def delete_cluster(self, cluster: ClusterId) -> None:
        """Nothing happens if Kubernetes has collected it already, after its owner."""
        try:
            self.plane.admin.delete(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters/{cluster.cluster}")
        except Refused as refused:
            if refused.status != 404:
                raise

    def make_pod(
        self,
        cluster: ClusterId,
        name: str,
        node_type: str,
        env: Mapping[str, str] | None = None,
        scheduler: str = "default-scheduler",
    ) -> Json:
        """A pod as the operator makes them; Kubernetes collects it after its cluster.

        Where another test has brought nodes it soon runs, unless its scheduler is `NOBODY`.
        """
        labels = {"ray.io/cluster": cluster.cluster, "ray.io/node-type": node_type, "ray.io/group": f"{node_type}s"}
        metadata = {"name": name, "labels": labels, "ownerReferences": [owner_reference(cluster)]}
        variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
        container = {"name": "ray", "image": "rayproject/ray:2.60.0", "env": variables}
        spec = {"containers": [container], "schedulerName": scheduler}
        return self.plane.admin.post(self._pods, {"metadata": metadata, "spec": spec})

    def patch_status(self, pod: str, **status: Any) -> None:
        """Say what a kubelet would."""
        self.plane.admin.patch(f"{self._pods}/{pod}/status", {"status": status})

    def delete_pod(self, pod: str) -> None:
        self.plane.admin.delete(f"{self._pods}/{pod}?gracePeriodSeconds=0")

    def tell(self, about: Json, reason: str, message: str) -> None:
        """An Event about something."""
        event = {
            "metadata": {"generateName": "told-"},
            "involvedObject": {"namespace": self.namespace, **about},
            "reason": reason,
            "message": message,
            "type": "Warning",
            "count": 3,
            "source": {"component": "kubelet", "host": "fake-1"},
            "firstTimestamp": "2026-11-15T19:00:00Z",
            "lastTimestamp": "2026-11-15T19:05:00Z",
        }
        self.plane.admin.post(f"/api/v1/namespaces/{self.namespace}/events", event)

    @property
    def _jobs(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{self.namespace}/rayjobs"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


class Observation:
    """One observer at work."""

    def __init__(self) -> None:
        self.metrics = KubeMetrics(CollectorRegistry())
        self.works_beside = False
        """Whether it does the other work of whoever leads."""

    async def work_beside(self, may_write: Callable[[], bool]) -> None:
        self.works_beside = may_write()
        try:
            await asyncio.Event().wait()
        finally:
            self.works_beside = False

    @property
    def is_leading(self) -> bool:
        return any(sample.value == 1 for family in self.metrics.leading.collect() for sample in family.samples)


@asynccontextmanager
async def observed(kubeconfig: Path, namespace: str, folder: Path) -> AsyncIterator[Observation]:
    """An observer of one namespace that writes into a folder, and soon after each change."""
    observation, settings = Observation(), parse_store_url(f"file://{folder}", {})
    metrics = ObserverMetrics(observation.metrics.registry)
    async with connected(kubeconfig, metrics=observation.metrics) as kube:
        store, names = open_store(settings), (namespace,)
        services = ObserverServices(kube, store, SystemClock(), observation.metrics, metrics, names, LIMITS, PACE)
        lease = ObjectKey(namespace, lease_name(settings, names))
        task = asyncio.create_task(Leading(services, lease, also=observation.work_beside).run())
        try:
            yield observation
        finally:
            task.cancel()
            await asyncio.wait({task})


@contextmanager
def history(folder: Path, flags: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A real history server, ended with the test."""
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("ab") as output:
        command = [*COMMAND, f"--cache-dir={folder}/cache", *flags]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


async def when_closed(store: ObjectStore, session: SessionId, seconds: float = PATIENCE_SECONDS) -> ClosedRecord:
    """What was written about the session's end, once it is."""
    closed = await eventually(lambda: closing_of(store, session), seconds=seconds)
    assert closed is not None
    return closed


async def facts_of(store: ObjectStore, cluster: ClusterId) -> KubeFacts:
    return await read_facts(store, cluster.namespace, cluster.cluster, cluster.uid)
