"""RayCronJobs fire when Kubernetes' own CronJobs do: both are asked for the last moment that they missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.labels import CRONJOB_SCHEDULED_TIMESTAMP
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.resources import JOBS
from raykeeper.operator.raycronjob.schedule import parse_schedule
from raykeeper.operator.raycronjob.zones import parse_zone
from support.conditions import eventually
from support.raycronjob_scene import CRON_OBJECTS, CronScene, a_cron_scene, a_raycronjob
from support.rayjob_scene import RAY_JOB_OBJECTS

CRON_JOBS: Resource[JSON] = Resource("batch", "v1", "cronjobs", "CronJob", dict)
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
POD: JSON = {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}


class Sample(NamedTuple):
    """A schedule that was last kept so many days ago."""

    schedule: str
    zone: str
    days: int


SAMPLES = (
    Sample("* * * * *", "UTC", 1),
    Sample("30 2 * * *", "Europe/Berlin", 40),
    Sample("30 1 * * *", "America/New_York", 40),
    Sample("15 0 * * *", "America/Sao_Paulo", 5),
    Sample("45 23 * * *", "Asia/Kathmandu", 2),
    Sample("0 0 31 * *", "Pacific/Chatham", 100),
    Sample("0 12 13 * fri", "Australia/Lord_Howe", 20),
    Sample("0 9 * * mon-fri", "Asia/Tokyo", 10),
    Sample("0 0 1 jan,jul ?", "Africa/Casablanca", 400),
    Sample("0 0 29 2 *", "UTC", 1500),
    Sample("59 23 28 * *", "Europe/London", 60),
    Sample("0 */5 * * *", "Asia/Kolkata", 2),
    Sample("@weekly", "Europe/Berlin", 20),
    Sample("@monthly", "America/St_Johns", 70),
    Sample("@hourly", "Asia/Kathmandu", 1),
)
"""Kubernetes guesses from the distance of two moments how many were missed, and of moments in bunches (`*/7 3-5 * * *`)
it then finds none: there are none of those here."""


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[CronScene]:
    async with a_cron_scene(ray_crds) as scene:
        yield scene


def a_cronjob(name: str, sample: Sample) -> JSON:
    template = {"spec": {"suspend": True, "template": POD}}
    return {
        "metadata": {"name": name},
        "spec": {
            "schedule": sample.schedule,
            "timeZone": sample.zone,
            "suspend": True,
            "jobTemplate": template,
        },
    }


async def kept_long_ago(scene: CronScene, resource: Resource[JSON], body: JSON, sample: Sample) -> None:
    """Make a suspended one, write down when it was last kept, and let it go on."""
    await scene.kube.create(resource, body, scene.namespace)
    key = ObjectKey(scene.namespace, body["metadata"]["name"])
    last = datetime.now(UTC) - timedelta(days=sample.days)
    status = {"lastScheduleTime": last.strftime("%Y-%m-%dT%H:%M:%SZ")}
    await scene.kube.merge_patch(resource, key, {"status": status}, subresource="status")
    await scene.kube.merge_patch(resource, key, {"spec": {"suspend": False}})


async def test_both_make_up_for_the_same_moment(scene: CronScene) -> None:
    names, began = {f"sample-{number:02}": sample for number, sample in enumerate(SAMPLES)}, datetime.now(UTC)
    for name, sample in names.items():
        cron = a_raycronjob(sample.schedule, name, timeZone=sample.zone, suspend=True)
        await asyncio.gather(
            kept_long_ago(scene, CRON_JOBS, a_cronjob(name, sample), sample),
            kept_long_ago(scene, CRON_OBJECTS, cron, sample),
        )
    async with scene.operating():
        theirs = await moments(scene, JOBS.read_as(dict), SCHEDULED, names)
        ours = await moments(scene, RAY_JOB_OBJECTS, CRONJOB_SCHEDULED_TIMESTAMP, names)
    ended = datetime.now(UTC)
    for name, sample in names.items():
        following = parse_schedule(sample.schedule, parse_zone(sample.zone)).after(began)
        if following is None or following > ended:  # else its moment may have come between the two
            assert ours[name] == theirs[name], sample


async def moments(scene: CronScene, jobs: Resource[JSON], annotation: str, names: Iterable[str]) -> dict[str, datetime]:
    """The moment for which each made its first job."""
    found: dict[str, datetime] = {}

    async def look() -> bool:
        for job in await scene.kube.list(jobs, scene.namespace):
            moment = datetime.fromisoformat(job["metadata"]["annotations"][annotation])
            found.setdefault(job["metadata"]["ownerReferences"][0]["name"], moment)
        return found.keys() == set(names)

    try:
        await eventually(look)
    except TimeoutError:
        pytest.fail(f"{jobs.kind} only of {sorted(found)}")
    return found
