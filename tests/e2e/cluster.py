"""Pods and Services of the end-to-end tests, and waiting for them, against the real node's cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bed.control_plane import ControlPlane
from bed.node.settings import RAY_IMAGE
from bed.rest import Json
from bed.waiting import wait_until

POD_SECONDS = 240.0  # a Ray head needs 15 on an idle machine


def a_pod(name: str, command: Sequence[str], *, image: str = RAY_IMAGE, **container: Any) -> Json:
    """A pod with one container that runs once; `container` adds fields such as `resources`."""
    main = {"name": "main", "image": image, "command": list(command), **container}
    metadata = {"name": name, "labels": {"app": name}}
    spec = {"containers": [main], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def a_service(name: str, *ports: int) -> Json:
    """A Service in front of the pod of the same name."""
    spec = {"selector": {"app": name}, "ports": [{"name": f"port-{port}", "port": port} for port in ports]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def a_ray_head(name: str) -> Json:
    """A pod that is a whole Ray cluster, ready once its raylet and its GCS say that they are well."""
    healthy = "wget -T 2 -q -O- http://localhost:{}/api/{} | grep success"
    probe = " && ".join([healthy.format(52365, "local_raylet_healthz"), healthy.format(8265, "gcs_healthz")])
    start = "ray start --head --block --dashboard-host=0.0.0.0 --num-cpus=1"
    return a_pod(
        name,
        ["bash", "-lc", start],
        # Ray gives its raylet 30 s to start, which is not enough while the machine builds something.
        env=[{"name": "RAY_raylet_start_wait_time_s", "value": "100"}],
        readinessProbe={"exec": {"command": ["bash", "-c", probe]}, "periodSeconds": 2, "timeoutSeconds": 5},
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "3Gi"}},
    )


@dataclass(frozen=True)
class Namespace:
    """One namespace of a cluster."""

    plane: ControlPlane
    name: str

    def create(self, *objects: Json) -> None:
        for item in objects:
            self.plane.admin.post(f"{self._path}/{item['kind'].lower()}s", item)

    def pod(self, name: str) -> Json:
        return self.plane.admin.get(f"{self._path}/pods/{name}")

    def log(self, name: str) -> str:
        return self.plane.admin.raw("GET", f"{self._path}/pods/{name}/log").decode()

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool]) -> Json:
        """The pod, once `condition` holds; fails with its log as soon as it has ended without that."""

        def settled() -> Json | None:
            pod = self.pod(name)
            return pod if condition(pod) or has_ended(pod) else None

        pod = wait_until(f"pod {name} {condition.__name__}", settled, POD_SECONDS)
        assert pod is not None
        assert condition(pod), f"pod {name} ended and never {condition.__name__}:\n{self.log(name)}"
        return pod

    def output_of(self, pod: Json) -> str:
        """Run `pod` to its end, which must be a good one, and return what it printed."""
        self.create(pod)
        name = pod["metadata"]["name"]
        phase = self.wait_for_pod(name, has_ended)["status"]["phase"]
        assert phase == "Succeeded", self.log(name)
        return self.log(name)

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.name}"


def is_ready(pod: Json) -> bool:
    """Whether Services may send it traffic."""
    conditions = pod["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def is_running(pod: Json) -> bool:
    """Whether its container has started and not ended."""
    return bool(pod["status"]["phase"] == "Running")


def has_ended(pod: Json) -> bool:
    """Whether its container has ended, well or not."""
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def end_of(pod: Json) -> Json:
    """How its container ended: `reason`, `exitCode` and so on."""
    end: Json = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return end


def start_of(pod: Json) -> str:
    """When its container started; another time is another container."""
    return str(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])
