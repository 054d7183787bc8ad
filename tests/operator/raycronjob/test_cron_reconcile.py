"""RayCronJobs on a real API server: what is made, left out, replaced and forgotten, and by whom it is stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, Object, ObjectKey, ObjectMeta
from raykeeper.api.raycronjob import RayCronJobStatus
from raykeeper.kube.errors import Invalid
from raykeeper.operator.raycronjob.reconcile import read_cron
from support.conditions import eventually
from support.crashes import CrashAfter
from support.raycronjob_scene import CRON_OBJECTS, CronScene, a_cron_scene, a_raycronjob, hourly, scheduled
from support.rayjob_scene import EVENTS, RAY_JOB_OBJECTS


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[CronScene]:
    async with a_cron_scene(ray_crds) as scene:
        yield scene


async def test_a_rayjob_is_made_when_it_is_due_and_its_end_is_told(scene: CronScene) -> None:
    body = a_raycronjob()
    await scene.apply(body)
    async with scene.operating(hours=1):
        (job,) = await scene.has_jobs(1)
        moment = datetime.fromisoformat(scheduled(job))
        assert (f"{moment.minute} * * * *", moment.second) == (body["spec"]["schedule"], 0)
        assert job["metadata"]["name"] == f"nightly-{int(moment.timestamp()) // 60}"
        assert job["metadata"]["labels"] == {
            "ray.io/cronjob-name": "nightly",
            "kueue.x-k8s.io/queue-name": "gpu",
        }
        assert job["metadata"]["ownerReferences"][0]["kind"] == "RayCronJob"
        assert job["spec"]["entrypoint"] == "python job.py"
        await scene.has_active(job["metadata"]["name"])
        status = await scene.status()
        assert (status["lastScheduleTime"], status["observedGeneration"]) == (scheduled(job), 1)
        await scene.says("Ready", reason="Scheduled")
        await scene.end(job)
        await scene.has_active()
        assert (await scene.status())["lastSuccessfulTime"] == "2026-11-16T11:30:00Z"
        assert job["metadata"]["name"] in (await scene.is_told("CreatedRayJob"))["note"]


async def test_it_fires_by_itself_and_each_moment_has_its_own_name(scene: CronScene) -> None:
    await scene.apply(a_raycronjob("@every 1s"))
    async with scene.operating():

        async def has_several() -> bool:
            return len(await scene.jobs()) >= 3

        await eventually(has_several)
    moments = [scheduled(job) for job in await scene.jobs()]
    assert len(set(moments)) == len(moments)


async def test_while_one_runs_forbid_waits_for_its_end(scene: CronScene) -> None:
    await scene.apply(a_raycronjob(concurrencyPolicy="Forbid"))
    async with scene.operating(hours=1):
        (first,) = await scene.has_jobs(1)
        await scene.has_active(first["metadata"]["name"])
    async with scene.operating(hours=2):
        assert first["metadata"]["name"] in (await scene.is_told("JobAlreadyActive"))["note"]
        assert len(await scene.jobs()) == 1
        await scene.end(first, "Failed", "FAILED")
        _, second = await scene.has_jobs(2)
        await scene.has_active(second["metadata"]["name"])
    assert "lastSuccessfulTime" not in await scene.status()


async def test_while_one_runs_replace_deletes_it(scene: CronScene) -> None:
    await scene.apply(a_raycronjob(concurrencyPolicy="Replace"))
    async with scene.operating(hours=1):
        (first,) = await scene.has_jobs(1)
    async with scene.operating(hours=2):
        await scene.is_told("DeletedRayJob")
        (second,) = await scene.has_jobs(1)
        assert scheduled(first) < scheduled(second)
        await scene.has_active(second["metadata"]["name"])
    assert len(scene.made) == 2


async def test_while_one_runs_allow_makes_another(scene: CronScene) -> None:
    await scene.apply(a_raycronjob())
    for hours in (1, 2):
        async with scene.operating(hours=hours):
            names = [job["metadata"]["name"] for job in await scene.has_jobs(hours)]
            await scene.has_active(*names)


async def test_after_three_days_away_one_rayjob_is_made(scene: CronScene) -> None:
    await scene.apply(a_raycronjob())
    async with scene.operating(hours=72):
        (job,) = await scene.has_jobs(1)
        await scene.has_active(job["metadata"]["name"])
    async with scene.operating(hours=72):
        await scene.patch(suspend=False)  # looked at again

        async def is_seen() -> bool:
            return bool((await scene.status())["observedGeneration"] == 2)

        await eventually(is_seen)
    assert len(scene.made) == 1
    assert (datetime.fromisoformat(scheduled(job)) - datetime.now(UTC)).total_seconds() > 70 * 3600


async def test_what_is_too_late_is_left_out_and_told(scene: CronScene) -> None:
    await scene.apply(a_raycronjob("@every 1h", startingDeadlineSeconds=60))
    async with scene.operating(hours=1.5):
        assert "too late" in (await scene.is_told("MissSchedule"))["note"]
    assert await scene.jobs() == []


async def test_nothing_is_made_while_suspended_and_one_afterwards(scene: CronScene) -> None:
    await scene.apply(a_raycronjob(suspend=True))
    async with scene.operating(hours=5):
        await scene.is_told("SuspendedRayCronJob")
        assert await scene.jobs() == []
        await scene.says("Ready", reason="Suspended")
        await scene.patch(suspend=False)
        await scene.has_jobs(1)


async def test_only_so_many_ended_rayjobs_are_kept_as_was_asked_for(scene: CronScene) -> None:
    await scene.apply(a_raycronjob(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
    for hours, end in ((1, "Complete"), (2, "Complete"), (3, "Failed")):
        async with scene.operating(hours=hours):

            async def is_made(count: int = hours) -> bool:
                return len(scene.made) == count

            await eventually(is_made)
            await scene.end((await scene.jobs())[-1], end)
            await scene.has_active()
            left = await scene.has_jobs(1)
    assert left[0]["metadata"]["name"] == sorted(scene.made.values())[1], "the last that succeeded"


async def test_an_impossible_schedule_is_refused_by_name_until_it_is_mended(scene: CronScene) -> None:
    await scene.apply(a_raycronjob("0 0 30 2 *"))
    async with scene.operating(hours=1):
        event = await scene.is_told("InvalidRayCronJobSpec")
        assert event["note"].startswith('spec.schedule is "0 0 30 2 *": 0 0 30 2 * never fires')
        await scene.says("Stalled", message=event["note"])
        assert await scene.jobs() == []
        await scene.patch(schedule=hourly())
        await scene.has_jobs(1)
        await scene.says("Stalled")
        await scene.says("Ready", status="True")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedule": "* * * *"}, "spec.schedule"),
        ({"schedule": "`reboot` ☃ $(x) ' \""}, "spec.schedule"),
        ({"schedule": "0 0 * * *\n"}, None),
        ({"timeZone": "Europe/Atlantis"}, "spec.timeZone"),
        ({"timeZone": "Europe/☃"}, "spec.timeZone"),
        ({"jobTemplate": {"entrypoint": "x"}}, "spec.jobTemplate"),
    ],
)
async def test_bad_input_is_named_by_its_field_and_nothing_is_made(
    scene: CronScene, spec: JSON, field: str | None
) -> None:
    await scene.apply(a_raycronjob(**spec))
    async with scene.operating(hours=30):
        if field is None:
            await scene.has_jobs(1)
        else:
            note = (await scene.is_told("InvalidRayCronJobSpec"))["note"]
            assert field in note
            await scene.says("Stalled", status="True", message=note, reason="InvalidRayCronJobSpec")
            await scene.says("Ready", status="False", message=note)
            assert await scene.jobs() == []


def stored(spec: JSON, status: JSON) -> Object:
    parts = [msgspec.Raw(msgspec.json.encode(part)) for part in (spec, status)]
    return Object(metadata=ObjectMeta(name="nightly", namespace="ns"), spec=parts[0], status=parts[1])


def test_what_cannot_be_read_keeps_its_status_and_is_named() -> None:
    status = {"lastScheduleTime": "2026-11-16T12:00:00Z"}
    cron, (broken,) = read_cron(stored(a_raycronjob(startingDeadlineSeconds="soon")["spec"], status))
    assert cron.status.last_schedule_time == "2026-11-16T12:00:00Z"
    assert str(broken) == "spec cannot be read: Expected `int | null`, got `str` - at `$.startingDeadlineSeconds`"
    cron, (broken,) = read_cron(stored(a_raycronjob()["spec"], {"active": 5}))
    assert (broken.part, cron.status) == ("Status", RayCronJobStatus())
    assert read_cron(stored(a_raycronjob()["spec"], status))[1] == []


async def test_a_policy_that_does_not_exist_is_refused_by_the_api_server(scene: CronScene) -> None:
    with pytest.raises(Invalid, match="concurrencyPolicy"):
        await scene.apply(a_raycronjob(concurrencyPolicy="Maybe"))


async def test_a_rayjob_of_somebody_else_is_neither_taken_nor_hidden(scene: CronScene) -> None:
    await scene.apply(a_raycronjob())
    async with scene.operating(hours=1):
        (job,) = await scene.has_jobs(1)
    key = ObjectKey(scene.namespace, job["metadata"]["name"])
    await scene.kube.delete(CRON_OBJECTS, scene.key)

    async def is_gone() -> bool:
        return await scene.kube.find(RAY_JOB_OBJECTS, key) is None

    await eventually(is_gone)
    body = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": key.name}, "spec": job["spec"]}
    await scene.kube.create(RAY_JOB_OBJECTS, body, scene.namespace)
    await scene.apply(a_raycronjob())
    async with scene.operating(hours=1):
        note = (await scene.is_told("FailedToCreateRayJob"))["note"]
        assert "does not belong to this RayCronJob" in note
        await scene.says("Ready", reason="FailedToCreateRayJob")


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
@pytest.mark.parametrize("writes", range(5))
async def test_each_moment_has_one_rayjob_wherever_the_operator_stopped(
    scene: CronScene, policy: str, writes: int
) -> None:
    await scene.apply(a_raycronjob(concurrencyPolicy=policy, successfulJobsHistoryLimit=0))
    async with scene.operating(hours=1):
        (first,) = await scene.has_jobs(1)
        await scene.has_active(first["metadata"]["name"])
    if policy == "Forbid":
        await scene.end(first)
    fence = CrashAfter(writes)

    async def has_second() -> bool:
        return len(scene.made) == 2

    async def is_over() -> bool:
        return fence.is_spent or await has_second()

    async with scene.operating(hours=2, fence=fence):
        await eventually(is_over)
    async with scene.operating(hours=2):
        await eventually(has_second)
        *_, second = await scene.has_jobs(2 if policy == "Allow" else 1)
        assert second["metadata"]["name"] != first["metadata"]["name"]
        await scene.end(second)
        await scene.has_jobs(1 if policy == "Allow" else 0)
        assert (await scene.status())["lastScheduleTime"] == scheduled(second)
    async with scene.operating(hours=2):
        await scene.patch(suspend=False)

        async def is_seen() -> bool:
            return bool((await scene.status())["observedGeneration"] == 2)

        await eventually(is_seen)
    assert len(scene.made) == 2, "no moment got two"


async def test_events_tell_nothing_twice(scene: CronScene) -> None:
    await scene.apply(a_raycronjob(suspend=True))
    async with scene.operating(hours=1):
        await scene.is_told("SuspendedRayCronJob")
        await scene.patch(timeZone="Europe/Berlin")

        async def is_seen() -> bool:
            return bool((await scene.status()).get("observedGeneration") == 2)

        await eventually(is_seen)
    assert len(await scene.kube.list(EVENTS, scene.namespace)) == 1
