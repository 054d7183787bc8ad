"""Ray's objects in a namespace of a real API server, as people see them on our pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bed.rest import Json
from raykeeper.clock import Clock, SystemClock
from raykeeper.history.live_objects.kubernetes import KubernetesObjects
from raykeeper.layout.keys import ClusterId
from support.helm_charts import Chart
from support.kube_clients import connected
from support.observed_kubernetes import NOBODY, RBAC, KubernetesScene
from support.raycluster_scene import a_group, a_raycluster

SECRET: Final = "hunter2-is-in-a-variable"


def chart_rules(**values: Any) -> list[Json]:
    """What the chart lets the server read."""
    documents = Chart("ray-history-server").render({"store": {"url": "gs://history"}, **values}, namespace="ray-system")
    return [rule for item in documents if item["kind"] == "ClusterRole" for rule in item["rules"]]


class LiveScene(KubernetesScene):
    """What people apply, and what kubelets say."""

    def apply(self, plural: str, body: Json) -> Json:
        return self.plane.admin.post(f"/apis/ray.io/v1/namespaces/{self.namespace}/{plural}", body)

    def make_all(self) -> None:
        """One object of each kind, none of which says anything yet."""
        cluster = a_raycluster(a_group(replicas=1))["spec"]
        for pod in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            container = pod["template"]["spec"]["containers"][0]
            pod["template"] = {"spec": {"containers": [{**container, "env": [{"name": "PLAIN", "value": SECRET}]}]}}
        job = {"entrypoint": "python train.py", "rayClusterSpec": cluster, "submissionMode": "HTTPMode"}
        self.apply("rayclusters", self._body("RayCluster", "train", cluster))
        self.apply("rayjobs", self._body("RayJob", "nightly", job))
        self.apply("rayservices", self._body("RayService", "answers", {"rayClusterConfig": cluster}))
        self.apply("raycronjobs", self._body("RayCronJob", "hourly", {"schedule": "0 * * * *", "jobTemplate": job}))

    def cluster_id(self, name: str, uid: str) -> ClusterId:
        return ClusterId(self.namespace, name, uid)

    def set_cluster_status(self, name: str, **status: Any) -> None:
        """Say what an operator would."""
        path = f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters/{name}/status"
        self.plane.admin.patch(path, {"status": status})

    def _body(self, kind: str, name: str, spec: Json) -> Json:
        return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}

    def kubeconfig_with(self, rules: Sequence[Json], name: str) -> Path:
        """Of a service account that may do this in the namespace, and nothing else."""
        place = f"{RBAC}/namespaces/{self.namespace}"
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.plane.admin.post(accounts, {"metadata": {"name": name}})
        account = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        self.plane.admin.post(f"{place}/roles", {"metadata": {"name": name}, "rules": list(rules)})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [account]}
        self.plane.admin.post(f"{place}/rolebindings", binding)
        user = f"system:serviceaccount:{self.namespace}:{name}"
        for rule in rules[-1:]:
            right = rule["verbs"][-1], rule["resources"][-1], rule["apiGroups"][-1], self.namespace
            self.plane.wait_for_right(user, *right)
        token = self.plane.token(self.namespace, name)
        return self.plane.kubeconfig(name, token=token, namespace=self.namespace)

    @asynccontextmanager
    async def objects(
        self, kubeconfig: Path | None = None, clock: Clock | None = None
    ) -> AsyncIterator[KubernetesObjects]:
        """What the server would read, by these rights."""
        async with connected(kubeconfig or self.plane.admin_kubeconfig) as kube:
            yield KubernetesObjects(kube, clock or SystemClock(), (self.namespace,))


__all__ = ["NOBODY", "SECRET", "LiveScene", "chart_rules"]
