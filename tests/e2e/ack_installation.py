"""Alibaba's documentation of its HistoryServer, carried out on the real node: charts, a role, a way to the server."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.helm import helm
from bed.node.settings import RAY_IMAGE
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json, Rest
from bed.waiting import wait_until
from e2e.history_process import START_SECONDS, History
from e2e.oss_on_minio import PROVIDER, OssOnMinio
from e2e.own_image import OWN_IMAGE
from e2e.ram_on_node import RamOnNode
from rayclusters.histories import OF_ACK
from support.identity_providers import CLIENT
from support.login_providers import SECRET

HOME: Final = "kuberay"
"""The namespace that the documentation uses."""
CHARTS: Final = Path(__file__).parents[2] / "helm-chart"
BUCKET, ROLE, ROOT = "ray-history", "ray-history-role", "ray/log"
TRUSTED: Final = "system:serviceaccount:*:ray-historyserver*"
"""The condition of the role in the documentation."""
NO_PULL: Final = "no-pull-of-images"
REPOSITORY, _, TAG = OWN_IMAGE.partition(":")

# There is no registry here, and the documentation's pods always ask one.
NO_PULL_POLICY: Final = f"""
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: {NO_PULL}}}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: default}}}}
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{{spec: Object.spec{{
          containers: object.spec.containers.map(one,
            Object.spec.containers{{name: one.name, imagePullPolicy: "IfNotPresent"}}),
          initContainers: (has(object.spec.initContainers) ? object.spec.initContainers : []).map(one,
            Object.spec.initContainers{{name: one.name, imagePullPolicy: "IfNotPresent"}})}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {NO_PULL}}}
spec: {{policyName: {NO_PULL}}}
"""


@dataclass(frozen=True)
class AckInstallation:
    """Operator and history server in the namespace `kuberay`, for clusters in `default`."""

    plane: ControlPlane
    oss: OssOnMinio
    ram: RamOnNode
    folder: Path
    port: int = field(default_factory=free_port)
    """Of the address that browsers reach the server by; 8080 in the documentation."""

    def install(self) -> None:
        """What the documentation has an administrator do, by the charts' values of the same names."""
        self.plane.kubectl("create", "namespace", HOME)
        self.plane.kubectl("apply", "--filename=-", stdin=NO_PULL_POLICY)
        limits = {"cpu": "500m", "memory": "300Mi"}
        self._helm(
            "kuberay-operator", resources={"limits": limits}, watchNamespace=["default"], metrics={"enabled": False}
        )
        facts = {"namespaces": ["default"]}
        self._create_application()
        self._helm("ray-history-server", kubernetesFacts=facts, queryMemoryMegabytes=256, **self._login())

    def _create_application(self) -> None:
        """The Secret of the documentation, and, which nobody needs there, whom to trust as RAM."""
        of_app = [f"--from-literal=webapp-id={CLIENT}", f"--from-literal=webapp-secret={SECRET}"]
        self.plane.kubectl("create", "secret", f"--namespace={HOME}", "generic", "webapp-secret", *of_app)
        self.plane.kubectl("create", "configmap", f"--namespace={HOME}", "ram-ca", f"--from-file=ca={self.ram.ca_file}")

    def _login(self) -> Json:
        """RAM for one account; that it is not Alibaba's own is the only difference."""
        mount = {"name": "ram-ca", "mountPath": "/etc/ram"}
        spec = {
            "volumes": [{"name": "ram-ca", "configMap": {"name": "ram-ca"}}],
            "containers": [{"name": "history-server", "volumeMounts": [mount]}],
        }
        return {
            "auth": {
                "mode": "ram",
                "allow": {"uids": [self.ram.provider.person["uid"]]},
                "oidc": {"issuerUrl": self.ram.provider.url},
            },
            "extraArgs": ["--oidc-ca-file=/etc/ram/ca"],
            "template": {"spec": spec},
        }

    def _helm(self, chart: str, **values: Any) -> None:
        image = {"repository": REPOSITORY, "tag": TAG, "pullPolicy": "Never"}
        file = self.folder / f"{chart}.yaml"
        file.write_text(yaml.safe_dump({"image": image, "history": self._history(), **values, **self._store(chart)}))
        where = [f"--kubeconfig={self.plane.admin_kubeconfig}", f"--namespace={HOME}"]
        homes = {name: str(self.folder) for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        command = [str(helm()), "install", chart, str(CHARTS / chart), f"--values={file}", "--wait", *where]
        done = subprocess.run(command, env=homes, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _history(self) -> Json:
        """One block for both charts."""
        return {
            "CallbackServiceName": f"localhost:{self.port}",
            "CloudRoleName": ROLE,
            "OSSBucket": BUCKET,
            "OSSEndPoint": self.oss.url,
            "OSSHistoryServerRootDir": ROOT,
            "OSSRegion": "cn-hangzhou",
            "OIDCProviderARN": PROVIDER,
        }

    def _store(self, chart: str) -> Json:
        """Where the token service is; in ACK everybody knows that."""
        store = {"store": {"env": {"ALIBABA_CLOUD_STS_ENDPOINT": self.oss.url}}}
        return store if chart == "ray-history-server" else {"history": {**self._history(), **store}}

    def uninstall(self) -> None:
        self.plane.kubectl("delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", NO_PULL)
        self.plane.kubectl("delete", "namespace", HOME, "--timeout=110s")
        charts = "--selector=app.kubernetes.io/managed-by=Helm"
        self.plane.kubectl("delete", "clusterrole,clusterrolebinding", charts)
        self.plane.kubectl("delete", "role,rolebinding", charts, "--namespace=default")

    def create_cluster(self, **head: Any) -> str:
        """Create the documentation's RayCluster with an image that is there; its name.

        `head`: fields of the head's Ray container. Then there is only a head.
        """
        text = OF_ACK.read_text().replace("image: xxxx", f"image: {RAY_IMAGE}")
        if head:
            changed = yaml.safe_load(text)
            changed["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0] |= head
            changed["spec"]["workerGroupSpecs"][0]["replicas"] = 0
            text = yaml.safe_dump(changed)
        created = self.plane.kubectl("create", "--filename=-", "--output=name", stdin=text)
        return created.strip().partition("/")[2]

    def read(self, pod: str, container: str, file: str) -> str:
        """A file of a container in `default`."""
        return self.plane.kubectl("exec", "--namespace=default", pod, f"--container={container}", "--", "cat", file)

    @contextlib.contextmanager
    def opened(self) -> Iterator[History]:
        """The history server as a browser reaches it by the documentation: through its Service, and signed in."""
        where = [f"--kubeconfig={self.plane.admin_kubeconfig}", f"--namespace={HOME}"]
        forward = [str(binary("kubectl")), *where, "port-forward", "svc/ray-history-server", f"{self.port}:80"]
        process = Process("port-forward", forward, self.folder)
        process.start()
        try:
            address = f"http://localhost:{self.port}"
            wait_until("the history server is reached", lambda: Rest(address).answers("/readz"), START_SECONDS)
            yield History(Rest(address, headers=self.ram.sign_in(address)))
        finally:
            process.stop()
