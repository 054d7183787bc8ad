"""A shell in which the commands of the guide run as they are written, and which cleans up after them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.node.image import REDIS_IMAGE
from bed.rest import Json
from bed.waiting import wait_until
from support.helm_releases import OUR_CHARTS, Helm

READY_SECONDS: Final = 300.0
GONE_SECONDS: Final = 180.0
REDIS: Final = "redis-master"
PASSWORD: Final = "ray-redis-password"
_HELM: Final = """#!/bin/bash
words=()
for word in "$@"; do
  case "$word" in
    oci://*/redis) exec kubectl apply --filename={redis} ;;
    kuberay/*) word={charts}/${{word#kuberay/}} ;;
  esac
  words+=("$word")
done
exec {helm} "${{words[@]}}"
"""


def redis_objects() -> list[Json]:
    """Debian's Redis under the name and with the password that Bitnami's chart would give it."""
    command = ["redis-server", "--protected-mode", "no", "--requirepass", PASSWORD]
    container = {"name": "redis", "image": REDIS_IMAGE, "command": command}
    metadata = {"name": REDIS, "labels": {"app": REDIS}}
    spec = {"selector": {"app": REDIS}, "ports": [{"port": 6379}]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec},
    ]


@dataclass(frozen=True)
class GuideShell:
    """`helm`, `kubectl` and `kind` for one test, whose files are in `folder`."""

    plane: ControlPlane
    folder: Path

    @property
    def helm(self) -> Helm:
        return Helm(self.plane, self.folder)

    def run(self, block: str) -> str:
        """Run a block of commands; what it prints. The first command that fails ends it."""
        (self.folder / "redis.yaml").write_text(yaml.safe_dump_all(redis_objects()))
        programs = {
            "helm": _HELM.format(redis=self.folder / "redis.yaml", charts=OUR_CHARTS, helm=self.helm.program),
            "kubectl": f'#!/bin/bash\nexec {shlex.quote(str(binary("kubectl")))} "$@"\n',
            "kind": "#!/bin/bash\n# There is a cluster already.\n",
        }
        for name, script in programs.items():
            file = self.folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(script)
            file.chmod(0o755)
        variables = {**self.helm.variables, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-eu"], input=block, env=variables, capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def wait_for_deployment(self, name: str, namespace: str = "default") -> Json:
        """The Deployment once all its pods are ready; its pods are told where they are not."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"

        def ready() -> Json | None:
            found = self.plane.admin.get(path)
            status, wanted = found.get("status", {}), found["spec"]["replicas"]
            return found if status.get("readyReplicas", 0) == wanted == status.get("updatedReplicas") else None

        found = wait_until(f"deployment {namespace}/{name}", ready, READY_SECONDS)
        assert found is not None
        return found

    def wait_for_cluster(self, name: str, namespace: str = "default") -> Json:
        """The RayCluster once all its pods have been ready."""
        path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}"

        def ready() -> Json | None:
            found = self.plane.admin.get(path)
            conditions = found.get("status", {}).get("conditions", [])
            said = {condition["type"]: condition["status"] for condition in conditions}
            return found if said.get("RayClusterProvisioned") == said.get("Ready", "True") == "True" else None

        found = wait_until(f"raycluster {namespace}/{name}", ready, READY_SECONDS)
        assert found is not None
        return found

    def pods(self, namespace: str = "default", selector: str = "") -> list[Json]:
        query = f"?labelSelector={selector}" if selector else ""
        items: list[Json] = self.plane.admin.get(f"/api/v1/namespaces/{namespace}/pods{query}")["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def clean_up(self) -> None:
        """Remove every release, those of clusters first, while an operator is there; then what is left of Redis."""
        releases = json.loads(self.helm("list", "--all-namespaces", "--output", "json"))
        for release in sorted(releases, key=lambda each: each["chart"].startswith("kuberay-operator")):
            if release["chart"].startswith("kuberay-operator"):
                wait_until("no RayCluster is left", lambda: not self._clusters(), GONE_SECONDS)
            self.helm("uninstall", release["name"], "--namespace", release["namespace"])
        kubectl = ("delete", "--ignore-not-found", "--namespace=default")
        self.plane.kubectl(*kubectl, "pod,service", REDIS, "--grace-period=0", "--force")
        self.plane.kubectl(*kubectl, "secret", "redis-password-secret")
        wait_until("no pod is left", lambda: not self.pods(), GONE_SECONDS)

    def _clusters(self) -> list[Json]:
        items: list[Json] = self.plane.admin.get("/apis/ray.io/v1/rayclusters")["items"]
        return items
