"""A namespace with a RayCronJob in it whose RayJobs nobody runs: the test says what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Unpack
from uuid import uuid4

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from raykeeper.api.labels import CRONJOB_SCHEDULED_TIMESTAMP
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.kube.client import Kube
from raykeeper.operator.kinds import WATCHED_RAYJOBS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import ClockAhead, Given, Operator, operating
from support.rayjob_scene import CLUSTER_SPEC, EVENTS, RAY_JOB_OBJECTS

CRON_OBJECTS = RAY_CRON_JOBS.read_as(dict)
LEFT_ALONE: JSON = {
    "entrypoint": "python job.py",
    "rayClusterSpec": CLUSTER_SPEC,
    "managedBy": "kueue.x-k8s.io/multikueue",
}
"""A RayJob that is another's to run."""


def hourly() -> str:
    """Once an hour, half an hour from now: however slow the machine is, no moment comes while a test looks."""
    return f"{(datetime.now().astimezone().minute + 30) % 60} * * * *"


def a_raycronjob(schedule: str = "", name: str = "nightly", **spec: Any) -> JSON:
    """Without a schedule it fires once an hour."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {"schedule": schedule or hourly(), "jobTemplate": LEFT_ALONE, **spec},
    }


class CronScene:
    """One RayCronJob in a namespace, and every RayJob that ever was there."""

    def __init__(self, plane: ControlPlane, kube: Kube, namespace: str) -> None:
        self.plane = plane
        self.kube = kube
        self.namespace = namespace
        self.key = ObjectKey(namespace, "nightly")
        self.made: dict[str, str] = {}
        """Uids of all RayJobs that an operator saw, and their names."""

    @contextlib.asynccontextmanager
    async def operating(self, hours: float = 0, **given: Unpack[Given]) -> AsyncIterator[Operator]:
        """An operator whose clock is so many hours ahead."""
        given["clock"] = ClockAhead(timedelta(hours=hours))
        async with operating(self.plane.admin_kubeconfig, self.namespace, **given) as operator:
            operator.informers.of(WATCHED_RAYJOBS).on_change(self._note)
            await operator.informers.wait_synced()
            yield operator

    def _note(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.made[new.metadata.uid] = new.metadata.name

    async def apply(self, body: JSON) -> None:
        await self.kube.create(CRON_OBJECTS, body, self.namespace)

    async def patch(self, **spec: Any) -> None:
        await self.kube.merge_patch(CRON_OBJECTS, self.key, {"spec": spec})

    async def status(self) -> JSON:
        found: JSON = (await self.kube.get(CRON_OBJECTS, self.key)).get("status") or {}
        return found

    async def condition(self, kind: str) -> JSON:
        conditions = (await self.status()).get("conditions") or []
        return next((one for one in conditions if one["type"] == kind), {})

    async def says(self, kind: str, **fields: str) -> None:
        """Return once a condition has these fields; without any, once it is not there."""

        async def look() -> bool:
            found = await self.condition(kind)
            return fields.items() <= found.items() if fields else not found

        await eventually(look)

    async def jobs(self) -> list[JSON]:
        """The RayJobs that are there, in the order of their moments."""
        found = await self.kube.list(RAY_JOB_OBJECTS, self.namespace)
        return sorted(found, key=lambda job: str(job["metadata"]["annotations"][CRONJOB_SCHEDULED_TIMESTAMP]))

    async def has_jobs(self, count: int) -> list[JSON]:
        async def look() -> bool:
            return len(await self.jobs()) == count

        await eventually(look)
        return await self.jobs()

    async def has_active(self, *names: str) -> None:
        """Return once the status lists these RayJobs as running."""

        async def look() -> bool:
            return {one["name"] for one in (await self.status()).get("active") or []} == set(names)

        await eventually(look)

    async def end(self, job: JSON, state: str = "Complete", job_status: str = "SUCCEEDED") -> None:
        status = {"jobDeploymentStatus": state, "jobStatus": job_status, "endTime": "2026-11-16T11:30:00Z"}
        key = ObjectKey(self.namespace, job["metadata"]["name"])
        await self.kube.merge_patch(RAY_JOB_OBJECTS, key, {"status": status}, subresource="status")

    async def is_told(self, reason: str) -> JSON:
        """The Event with this reason, once it is there."""

        async def look() -> JSON | None:
            events = await self.kube.list(EVENTS, self.namespace)
            return next((event for event in events if event["reason"] == reason), None)

        return await eventually(look) or {}


@contextlib.asynccontextmanager
async def a_cron_scene(plane: ControlPlane) -> AsyncIterator[CronScene]:
    name = f"cron-{uuid4().hex[:10]}"
    await asyncio.to_thread(make_namespace, plane, name)
    async with connected(plane.admin_kubeconfig) as kube:
        yield CronScene(plane, kube, name)
    await asyncio.to_thread(remove_namespace, plane, name)


def scheduled(job: JSON) -> str:
    """The moment that a RayJob was made for."""
    return str(job["metadata"]["annotations"][CRONJOB_SCHEDULED_TIMESTAMP])
