"""One RayJob with real Ray on a real node, from its creation to Complete, kept by our operator and by KubeRay's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from bed.control_plane import ControlPlane
from bed.counted import a_registry
from bed.crds import install_ray_crds
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on
from bed.node.real_node import node_cluster
from bed.node.settings import RAY_IMAGE, RAY_VERSION
from bed.ports import free_port
from bed.runs import end_run, new_run
from bench.figures import Figure
from bench.rayclusters import an_operator
from bench.servers import a_client
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.informer import Handler, Informer
from raykeeper.kube.resources import JOBS, PODS

RUNS = 2
DEADLINE_SECONDS = 240.0
PROXY = "--use-kubernetes-proxy"
"""Both run beside the node, where the names of Services mean nothing."""
OURS, THEIRS = "ours", f"KubeRay {KUBERAYS_VERSION}"
OBJECTS = RAY_JOBS.read_as(dict)
KEY = ObjectKey("default", "sample")
ENTRYPOINT = 'python -c "import ray; ray.init(); print(ray.get(ray.remote(lambda: 42).remote()))"'


class Marks(NamedTuple):
    """Seconds since the RayJob was created, in the order in which one waits for the other."""

    cluster: float
    pods: float
    """The last Ray pod was created."""
    ready: float
    """The last Ray pod was ready."""
    submitter: float
    """The submitter Job was created."""
    printed: float
    """The submitter's pod had ended."""
    complete: float

    @property
    def waits(self) -> dict[str, float]:
        """What nothing but the operator was waited for."""
        return {
            "cluster": self.cluster,
            "pods": self.pods - self.cluster,
            "submitter": self.submitter - self.ready,
            "end": self.complete - self.printed,
        }

    @property
    def share(self) -> float:
        return sum(self.waits.values()) / self.complete * 100

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.waits.items())


def run() -> Iterator[Figure]:
    """A head, a worker and a submitter; the operators take turns, and the better of two runs counts."""
    with _a_node() as plane:
        runs: dict[str, list[Marks]] = {OURS: [], THEIRS: []}
        for name in (THEIRS, OURS) * RUNS:
            with _operated(plane, name):
                runs[name].append(asyncio.run(_measured(plane)))
        ours, theirs = (min(marks, key=lambda one: one.complete) for marks in runs.values())
    name = "RayJob on the real node"
    slower = f"{THEIRS}: {theirs.complete:.1f} s; slowest of {RUNS}: {max(one.complete for one in runs[OURS]):.1f} s"
    yield Figure(f"{name}: create to Complete", ours.complete, "s", theirs.complete, "less", slower)
    spent = f"s: {ours}; {THEIRS}: {theirs.share:.0f} % ({theirs})"
    yield Figure(f"{name}: share spent waiting for the operator", ours.share, "%", baseline=spent)


@contextlib.contextmanager
def _a_node() -> Iterator[ControlPlane]:
    folder = new_run()
    try:
        node = node_cluster(folder / "with-node")
        install_ray_crds(node.plane)
        yield node.plane
    finally:
        end_run(folder)


@contextlib.contextmanager
def _operated(plane: ControlPlane, name: str) -> Iterator[None]:
    if name == OURS:
        with an_operator(plane, free_port(), PROXY):
            yield
    else:
        with kuberay_on(plane) as kuberay:
            kuberay.start(PROXY, elected=False)
            yield


async def _measured(plane: ControlPlane) -> Marks:
    """Create the RayJob, follow it to its end, and leave nothing of it."""
    async with a_client(plane.admin_kubeconfig) as kube, Lookout(kube) as lookout:
        lookout.began = time.monotonic()
        await kube.create(OBJECTS, _sample(), KEY.namespace)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await lookout.is_complete.wait()
            await kube.delete(OBJECTS, KEY)
            await lookout.is_empty()
    return lookout.marks()


class Lookout:
    """Notes when what was first seen; the objects of one RayJob are all that there is."""

    def __init__(self, kube: Kube) -> None:
        self.began = 0.0
        self.is_complete = asyncio.Event()
        self._seen: dict[str, float] = {}
        kinds = (RAY_JOBS, RAY_CLUSTERS, PODS, JOBS)
        self._informers = [Informer(kube, kind, a_registry(), namespaces=[KEY.namespace]) for kind in kinds]
        sights = (self._see_rayjob, self._see_cluster, self._see_pod, self._see_submitter)
        for informer, see in zip(self._informers, sights, strict=True):
            informer.on_change(_of_what_is_there(see))
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Lookout:
        self._tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        for informer in self._informers:
            await informer.wait_synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _note(self, mark: str) -> None:
        self._seen.setdefault(mark, time.monotonic() - self.began)

    def _see_rayjob(self, item: Object) -> None:
        state = msgspec.json.decode(item.status or b"{}", type=_JobStatus).job_deployment_status
        if state == "Complete":
            self._note("complete")
            self.is_complete.set()

    def _see_cluster(self, _item: Object) -> None:
        self._note("cluster")

    def _see_submitter(self, _item: Object) -> None:
        self._note("submitter")

    def _see_pod(self, item: Object) -> None:
        status, name = msgspec.json.decode(item.status or b"{}", type=_PodStatus), item.metadata.name
        if labels.NODE_TYPE not in item.metadata.labels:
            if status.phase == "Succeeded":
                self._note("printed")
            return
        self._note(f"pod {name}")
        if any(one.type == "Ready" and one.status == "True" for one in status.conditions):
            self._note(f"ready {name}")

    async def is_empty(self) -> None:
        """Return once nothing of the RayJob is left, so that the next one starts as this one did."""
        while any(len(informer.cache) for informer in self._informers):  # noqa: ASYNC110 - watches empty them
            await asyncio.sleep(0.1)

    def marks(self) -> Marks:
        pods = [at for name, at in self._seen.items() if name.startswith("pod ")]
        ready = [at for name, at in self._seen.items() if name.startswith("ready ")]
        seen = self._seen
        return Marks(seen["cluster"], max(pods), max(ready), seen["submitter"], seen["printed"], seen["complete"])


def _of_what_is_there(see: Callable[[Object], None]) -> Handler[Object]:
    return lambda _old, new: see(new) if new is not None else None


class _JobStatus(msgspec.Struct, rename="camel"):
    job_deployment_status: str = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _PodStatus(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


def _sample() -> JSON:
    """As KubeRay's own sample, without packages that each run would fetch."""
    head, worker = _template("1", "2Gi"), _template("500m", "1Gi")
    group = {"groupName": "small-group", "replicas": 1, "minReplicas": 1, "maxReplicas": 5, "rayStartParams": {}}
    cluster = {
        "rayVersion": RAY_VERSION,
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [{**group, "template": worker}],
    }
    metadata = {"name": KEY.name}
    spec = {"entrypoint": ENTRYPOINT, "rayClusterSpec": cluster}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def _template(cpu: str, memory: str) -> JSON:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "2", "memory": "3Gi"}}
    container = {"name": "ray", "image": RAY_IMAGE, "resources": resources}
    return {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
