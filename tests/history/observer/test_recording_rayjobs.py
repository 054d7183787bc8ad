"""Each change of a RayJob reaches its one record, through restarts, outages and deletions that nobody saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.history.observer.facts import event_fact
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.rayjob_writer import RayJobWriter
from raykeeper.history.observer.rayjobs import FEW_STATES, MANY_WAITING, RayJobs, RayJobSink
from raykeeper.history.store.rayjobs import MOST_OF_CLUSTER, RayJobReader
from raykeeper.layout.keys import RayJobId
from raykeeper.layout.rayjobs import RayJobRecord
from support.clocks import ManualClock
from support.observer_scene import CREATED, StoreWithOutages, as_object, event

OBSERVER = "lease-1"
KEY = ObjectKey("team-a", "nightly")
STARTING = {"jobDeploymentStatus": "Initializing", "rayClusterName": "nightly-aaaaa", "jobId": "nightly-xxxxx"}
RUNNING = {**STARTING, "jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
TIMED_OUT = {**RUNNING, "jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "too long"}


def rayjob(status: JSON | None = None, uid: str = "j-1", name: str = "nightly", **parts: Any) -> Object:
    metadata = {"namespace": "team-a", "name": name, "uid": uid, "creationTimestamp": CREATED}
    return as_object({"metadata": metadata | parts.pop("metadata", {}), "status": status or {}, **parts}, Object)


class Life:
    """One observer, from its start to its end."""

    def __init__(self, store: StoreWithOutages, clock: ManualClock, *there: Object) -> None:
        self.rayjobs = RayJobs(clock)
        self.sink = RayJobSink(self.rayjobs)
        metrics = ObserverMetrics(CollectorRegistry())
        self.writes = metrics.rayjobs
        self.writer = RayJobWriter(self.rayjobs, store, OBSERVER, (), clock, metrics, lambda: True)
        self._clock = clock
        for item in there:
            self.sink.put(item)

    async def begin(self) -> Life:
        await self.writer.recall()
        await self.writer.write_due()
        return self

    async def show(self, item: Object) -> None:
        self._clock.advance(2)
        self.sink.put(item)
        await self.writer.write_due()

    @property
    def written(self) -> float:
        return next(iter(self.writes.collect())).samples[0].value


@pytest.fixture
def store(tmp_path: Path) -> StoreWithOutages:
    return StoreWithOutages(tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def only_record(store: StoreWithOutages) -> RayJobRecord:
    [record] = await RayJobReader(store).named("team-a", "nightly")
    return record


async def notes(store: StoreWithOutages) -> list[str]:
    return [stat.key async for stat in store.list("v1/observed-rayjobs/")]


async def test_a_rayjob_that_times_out_is_recorded_with_all_its_states(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    life = await Life(store, clock, rayjob()).begin()
    assert await notes(store)
    for status in (STARTING, RUNNING, TIMED_OUT):
        await life.show(rayjob(status))
    record = await only_record(store)
    assert [one.deployment_status for one in record.states] == ["", "Initializing", "Running", "Failed"]
    assert (record.states[-1].reason, record.job_ids, record.is_final) == ("DeadlineExceeded", ("nightly-xxxxx",), True)
    assert [one.name for one in await RayJobReader(store).of_cluster("team-a", "nightly-aaaaa")] == ["nightly"]
    assert await notes(store) == []


async def test_an_observer_that_starts_again_writes_nothing_about_rayjobs_that_rest(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    ended = [rayjob(TIMED_OUT, f"j-{number}", f"nightly-{number}") for number in range(20)]
    assert (await Life(store, clock, *ended).begin()).written == 20
    clock.advance(3600)
    assert (await Life(store, clock, *ended).begin()).written == 0


async def test_what_changed_while_no_observer_ran_follows_what_was_seen_before(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    await Life(store, clock, rayjob(RUNNING)).begin()
    clock.advance(600)
    await Life(store, clock, rayjob(TIMED_OUT)).begin()
    assert [one.deployment_status for one in (await only_record(store)).states] == ["Running", "Failed"]


async def test_a_rayjob_deleted_while_no_observer_ran_is_recorded_as_deleted(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    await Life(store, clock, rayjob(RUNNING)).begin()
    clock.advance(600)
    await Life(store, clock).begin()
    record = await only_record(store)
    assert (record.deleted_at, record.was_away_at_deletion) == (clock.now(), True)
    assert [one.deployment_status for one in record.states] == ["Running"]
    assert await notes(store) == []


async def test_a_rayjob_made_again_under_its_name_is_another_one(store: StoreWithOutages, clock: ManualClock) -> None:
    life = await Life(store, clock, rayjob(RUNNING)).begin()
    await life.show(rayjob(STARTING, "j-2", metadata={"creationTimestamp": "2026-11-15T20:00:00Z"}))
    newer, older = await RayJobReader(store).named("team-a", "nightly")
    assert (newer.uid, newer.deleted_at) == ("j-2", None)
    assert (older.uid, older.deleted_at) == ("j-1", clock.now())


async def test_the_end_of_a_rayjob_that_had_ended_says_nothing(store: StoreWithOutages, clock: ManualClock) -> None:
    life = await Life(store, clock, rayjob(TIMED_OUT)).begin()
    life.sink.remove(KEY)
    await life.writer.write_due()
    assert (await only_record(store)).deleted_at is None


async def test_changes_wait_while_the_store_is_away(store: StoreWithOutages, clock: ManualClock) -> None:
    life = await Life(store, clock, rayjob()).begin()
    store.is_away = True
    for status in (STARTING, RUNNING, TIMED_OUT):
        await life.show(rayjob(status))
    life.sink.remove(KEY)
    store.is_away = False
    await life.writer.write_due()
    assert [one.deployment_status for one in (await only_record(store)).states][1:] == [
        "Initializing",
        "Running",
        "Failed",
    ]


async def test_a_rayjob_that_flaps_is_written_ever_more_rarely(store: StoreWithOutages, clock: ManualClock) -> None:
    life = await Life(store, clock, rayjob()).begin()
    for number in range(200):
        await life.show(rayjob({"message": f"flap {number}"}))
    assert life.written < 40  # in 400 seconds
    await life.writer.write_due(all_of_it=True)
    assert (await only_record(store)).states[-1].message == "flap 199"


def test_many_rayjobs_that_wait_keep_their_last_states_alone(clock: ManualClock) -> None:
    rayjobs = RayJobs(clock)
    for number in range(MANY_WAITING):
        rayjobs.see(rayjob(STARTING, f"j-{number}", f"job-{number}"))
    for number in range(50):
        rayjobs.see(rayjob({"message": f"flap {number}"}))
    waiting = rayjobs.waiting[RayJobId("team-a", "nightly", "j-1")]
    assert (len(waiting.states), waiting.states_left_out) == (FEW_STATES, 45)
    assert waiting.states[-1].message == "flap 49"


async def test_warnings_about_a_rayjob_are_kept_also_if_they_came_first(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    life = Life(store, clock)
    told = event("j-1", kind="RayJob", reason="FailedToCreateRayCluster", message="exceeded quota")
    life.rayjobs.tell(event_fact(told, clock.now()))
    life.sink.put(rayjob())
    await life.begin()
    again = event("j-1", "e-2", kind="RayJob", reason="FailedToCreateRayCluster", message="exceeded quota again")
    life.rayjobs.tell(event_fact(again, clock.now()))
    await life.writer.write_due()
    record = await only_record(store)
    assert [one.message for one in record.warnings] == ["exceeded quota", "exceeded quota again"]
    assert len(record.states) == 1


async def test_a_record_that_somebody_damaged_is_begun_anew(store: StoreWithOutages, clock: ManualClock) -> None:
    await store.put(RayJobId("team-a", "nightly", "j-1").key, b"{")
    await Life(store, clock, rayjob(RUNNING)).begin()
    assert (await only_record(store)).states[-1].job_status == "RUNNING"


async def test_of_a_cluster_that_many_share_the_newest_rayjobs_are_read(
    store: StoreWithOutages, clock: ManualClock
) -> None:
    many = [rayjob(RUNNING, f"j-{number}", f"job-{number}") for number in range(MOST_OF_CLUSTER + 5)]
    await Life(store, clock, *many).begin()
    assert len(await RayJobReader(store).of_cluster("team-a", "nightly-aaaaa")) == MOST_OF_CLUSTER


def test_what_may_be_secret_is_not_recorded(clock: ManualClock) -> None:
    rayjobs = RayJobs(clock)
    spec = {"entrypoint": "python x.py --token hunter2", "runtimeEnvYAML": "env_vars: {TOKEN: hunter2}"}
    rayjobs.see(rayjob(RUNNING, spec=spec))
    assert "hunter2" not in str(rayjobs.waiting)


async def test_a_status_of_another_shape_costs_that_rayjob_alone(store: StoreWithOutages, clock: ManualClock) -> None:
    odd = rayjob({"jobStatus": ["what"]}, "j-2", "odd")
    await Life(store, clock, odd, rayjob(RUNNING)).begin()
    assert (await only_record(store)).states[-1].job_status == "RUNNING"
