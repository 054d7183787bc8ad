"""RayClusters with a collector in every pod and a bucket outside, and what their own dashboards say while they live."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.minio import Minio
from bed.node.settings import RAY_VERSION
from bed.rest import Refused, Rest
from e2e.own_image import OWN_IMAGE
from e2e.ray_scene import HEAD_RESOURCES, RealScene, a_template
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import PODS
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.settings import OperatorSettings
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.settings.sources import read_store_settings
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating

DASHBOARD_PORT, METRICS_PORT, COLLECTOR_PORT = 8265, 8080, 8085
JOB = "nightly"
JOB_SECONDS = 240.0
OVER = ("SUCCEEDED", "FAILED", "STOPPED")
_WHOLE_SAMPLE = re.compile(rb'^raykeeper_collector_samples_total\{kind="whole"\} [1-9]', re.MULTILINE)
_AGENT_COUNT = re.compile(r"^ray_aggregator_agent_(\w+)_total\{[^\n]*\} (\S+)$", re.MULTILINE)
WITH_COLLECTORS = OperatorSettings(gates=FeatureGates({Gate.HISTORY_SERVER: True}))


@dataclass(frozen=True)
class PodBucket:
    """A bucket of the MinIO that pods can reach, by KubeRay's variables."""

    minio: Minio
    name: str

    @property
    def variables(self) -> dict[str, str]:
        return {
            "S3_BUCKET": self.name,
            "S3_ENDPOINT": self.minio.endpoint,
            "S3_REGION": "us-east-1",
            "S3FORCE_PATH_STYLE": "true",
            "AWS_ACCESS_KEY_ID": self.minio.access_key,
            "AWS_SECRET_ACCESS_KEY": self.minio.secret_key,
        }

    @property
    def settings(self) -> StoreSettings:
        return read_store_settings("s3", "", self.variables)

    def collector_options(self, **variables: str) -> JSON:
        """What a RayCluster says about its collectors."""
        told = {"STORAGE_BACKEND": "s3", **self.variables, **variables}
        env = [{"name": name, "value": value} for name, value in told.items()]
        return {"collectorOptions": {"image": OWN_IMAGE, "imagePullPolicy": "Never", "env": env}}


def a_collected_cluster(name: str, bucket: PodBucket, *groups: JSON, head_cpus: int, **collector: str) -> JSON:
    """A RayCluster whose pods have collectors, and the grace period that the operator gives such pods."""
    head = {"rayStartParams": {"num-cpus": str(head_cpus)}, "template": with_grace(a_template(HEAD_RESOURCES, {}))}
    spec = {
        "rayVersion": RAY_VERSION,
        "headGroupSpec": head,
        "workerGroupSpecs": list(groups),
        "historyServerOptions": bucket.collector_options(**collector),
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": spec}


def with_grace(template: JSON) -> JSON:
    """The template without its own grace period."""
    spec = {name: value for name, value in template["spec"].items() if name != "terminationGracePeriodSeconds"}
    return {**template, "spec": spec}


class CollectedScene(RealScene):
    """One such RayCluster."""

    async def ask(self, path: str, **query: str) -> Any:
        """The answer of the head's own dashboard; None while there is none."""
        url = f"{path}?{urlencode(query)}" if query else path
        try:
            return await asyncio.to_thread(Rest(f"http://{await self.head_ip()}:{DASHBOARD_PORT}").get, url)
        except (OSError, Refused):
            return None

    async def head_ip(self) -> str:
        (head,) = await self.group(labels.HEAD_GROUP)
        return str(head["status"].get("podIP", ""))

    async def submit(self, entrypoint: str) -> None:
        """Hand a command line in as the job `nightly`, without waiting for it."""
        body = {"entrypoint": entrypoint, "submission_id": JOB}
        await asyncio.to_thread(Rest(f"http://{await self.head_ip()}:{DASHBOARD_PORT}").post, "/api/jobs/", body)

    async def finished(self) -> JSON:
        """What the dashboard says of the job once it is over."""

        async def look() -> JSON | None:
            found: JSON | None = await self.ask(f"/api/jobs/{JOB}")
            return found if found and found["status"] in OVER else None

        return await eventually(look, seconds=JOB_SECONDS) or {}

    async def acknowledged_events(self) -> dict[str, int]:
        """By pod, how many events Ray's agent there knows to be taken; all that it has, once it has no more to send."""
        pods = await self.pod_ips()
        counts: dict[str, int] = {}

        async def all_are_sent() -> bool:
            for name, ip in pods.items():
                received, counts[name] = await asyncio.to_thread(_agent_counts, ip)
                if not 0 < received == counts[name]:
                    return False
            return True

        await eventually(all_are_sent, seconds=JOB_SECONDS)
        return counts

    async def pod_ips(self) -> dict[str, str]:
        """Where each pod can be reached that has a place to run at."""
        pods = await self.pods()
        return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in pods if "podIP" in pod["status"]}

    async def is_sampled(self, pod_ips: Iterable[str]) -> None:
        """Return once each collector has a sample with what Ray's agent says: on a busy machine that comes late."""

        async def all_have_one() -> bool:
            servers = [Rest(f"http://{ip}:{COLLECTOR_PORT}") for ip in pod_ips]
            texts = await asyncio.gather(*(asyncio.to_thread(server.raw, "GET", "/metrics") for server in servers))
            return all(_WHOLE_SAMPLE.search(text) for text in texts)

        await eventually(all_have_one, seconds=JOB_SECONDS)

    async def is_silent(self, pod_ips: Iterable[str]) -> None:
        """Return once no collector answers there: of a pod deleted by force Kubernetes itself knows nothing."""

        async def none_answers() -> bool:
            servers = [Rest(f"http://{ip}:{COLLECTOR_PORT}") for ip in pod_ips]
            answers = await asyncio.gather(*(asyncio.to_thread(server.answers, "/healthz") for server in servers))
            return not any(answers)

        await self.sees(none_answers)

    async def evict_pod(self, group: str) -> None:
        """Have a pod of the group evicted, as whoever drains its node does."""
        pod = (await self.group(group))[0]["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}"
        await asyncio.to_thread(self.plane.admin.post, f"{path}/eviction", {"metadata": {"name": pod}})

    async def force_delete_pod(self, group: str) -> str:
        """Delete a pod of the group without grace; its name."""
        pod = (await self.group(group))[0]["metadata"]["name"]
        await self.kube.delete(PODS, ObjectKey(self.namespace, pod), grace_seconds=0)
        return str(pod)


def _agent_counts(ip: str) -> tuple[int, int]:
    """Events that the agent of a pod's Ray received, and that the collector beside it took."""
    text = Rest(f"http://{ip}:{METRICS_PORT}").raw("GET", "/metrics").decode()
    counts = dict(_AGENT_COUNT.findall(text))
    received, published = (round(float(counts.get(name, 0))) for name in ("events_received", "published_events"))
    return received, published


@contextlib.asynccontextmanager
async def collected_scenes(plane: ControlPlane, namespace: str, *names: str) -> AsyncIterator[list[CollectedScene]]:
    """Scenes of these clusters in one namespace, in which an operator works that puts collectors into pods."""
    install_ray_crds(plane)
    async with (
        connected(plane.admin_kubeconfig) as kube,
        operating(plane.admin_kubeconfig, namespace, settings=WITH_COLLECTORS),
    ):
        yield [CollectedScene(kube, plane, namespace, name) for name in names]
