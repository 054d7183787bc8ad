"""Ends of clusters that were seen alive are written down; of others never."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.history.observer.closer import LATE_SECONDS, STUCK_SECONDS, Closer, ClosingPace, Notes, ending_of
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.observer import ClusterSink, PodSink
from raykeeper.history.observer.outbox import Outbox
from raykeeper.history.observer.rayjobs import RayJobs
from raykeeper.history.observer.recorder import Recorder
from raykeeper.history.observer.roster import Roster, Sight
from raykeeper.history.observer.session_ends import Ending, SessionEnds
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.keys import OBSERVED_PREFIX, ClusterId, ObservedKey, session_record_key
from raykeeper.layout.records import (
    CLUSTER_DELETED,
    CLUSTER_SUSPENDED,
    HEAD_LOST,
    SessionRecord,
    decode_record,
    encode_record,
)
from support.clocks import ManualClock
from support.conditions import until
from support.observer_scene import (
    CLUSTER,
    StoreWithOutages,
    closing_of,
    cluster,
    pod,
    put_head_beat,
    put_session_of,
)

TRAIN = ObjectKey("team-a", "train")
HEAD = ObjectKey("team-a", "train-head")
OURS = "lease-1"


class Scene:
    """One observer's life over a store; `settle` lets time pass until all that is due has been done."""

    def __init__(self, store: StoreWithOutages, observer: str = OURS, namespaces: tuple[str, ...] = ()) -> None:
        self.store, self.clock, self.is_leading = store, ManualClock(), True
        roster = Roster()
        self.metrics = ObserverMetrics(CollectorRegistry())
        self.closer = Closer(
            roster,
            Notes(store, observer, namespaces),
            SessionEnds(store, StoreClock(store, self.clock)),
            self.clock,
            self.metrics,
            lambda: self.is_leading,
            ClosingPace(retry=Backoff(base=0.01, limit=0.01)),
        )
        recorder = Recorder(roster, Outbox(), RayJobs(self.clock), self.clock, self.closer.look_at)
        self.clusters, self.pods = ClusterSink(recorder), PodSink(recorder)

    async def settle(self, seconds: float = 10.0) -> None:
        self.clock.advance(seconds)
        while await self.closer.visit_due():
            continue

    def live(self, id_: ClusterId = CLUSTER) -> None:
        self.clusters.put(cluster(id_))
        self.pods.put(pod("head", id_, node_type="head"))

    async def notes(self) -> set[str]:
        return {stat.key async for stat in self.store.list(OBSERVED_PREFIX)}


@pytest.fixture
def store(tmp_path: Path) -> StoreWithOutages:
    return StoreWithOutages(tmp_path / "store")


@pytest.fixture
def scene(store: StoreWithOutages) -> Scene:
    return Scene(store)


@pytest.mark.parametrize(
    ("sight", "gone_seconds", "reason"),
    [
        (Sight(is_there=True), 0, None),
        (Sight(is_there=True, has_living_head=True, had_head=True), 0, None),
        (Sight(is_there=True, had_head=True), 0, HEAD_LOST),
        (Sight(is_there=True, had_head=True, is_suspended=True), 0, CLUSTER_SUSPENDED),
        (Sight(is_there=True, had_head=True, is_being_deleted=True), 0, None),
        (Sight(is_there=False), 0, CLUSTER_DELETED),
        (Sight(is_there=False, has_living_head=True, had_head=True), STUCK_SECONDS - 1, None),
        (Sight(is_there=False, has_living_head=True, had_head=True), STUCK_SECONDS, CLUSTER_DELETED),
    ],
    ids=["starts", "lives", "lost head", "suspended", "being deleted", "deleted", "head ends", "head stuck"],
)
def test_what_is_seen_decides_about_the_end(sight: Sight, gone_seconds: float, reason: str | None) -> None:
    assert ending_of(sight, gone_seconds=gone_seconds) == reason


async def test_a_deleted_cluster_closes_its_newest_session_once_its_head_is_gone(
    store: StoreWithOutages, scene: Scene
) -> None:
    older = await put_session_of(store, name="session_2026-11-15_19-00-09_1_1")
    session = await put_session_of(store, name="session_2026-11-15_19-00-09_1_2")
    scene.live()
    await scene.settle()
    scene.clusters.remove(TRAIN)
    await scene.settle()
    assert await closing_of(store, session) is None  # its collector may still be beating
    scene.pods.remove(HEAD)
    await scene.settle()
    closed = await closing_of(store, session)
    assert closed is not None
    assert (closed.reason, closed.cluster_uid) == (CLUSTER_DELETED, "c-1")
    assert await closing_of(store, older) is None  # it ended when the newer one began
    assert scene.metrics.closed.labels(CLUSTER_DELETED)._value.get() == 1


async def test_sessions_of_another_cluster_under_the_same_name_stay_open(store: StoreWithOutages, scene: Scene) -> None:
    foreign = await put_session_of(store, ClusterId("team-a", "train", "in another kubernetes"))
    scene.live()
    await scene.settle()
    scene.clusters.remove(TRAIN)
    scene.pods.remove(HEAD)
    await scene.settle()
    assert await closing_of(store, foreign) is None


async def test_pods_alone_are_no_proof_that_their_cluster_was_seen(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.pods.put(pod("head", node_type="head"))
    scene.pods.remove(HEAD)
    await scene.settle()
    assert (await closing_of(store, session), await scene.notes()) == (None, set())


async def test_a_session_that_reaches_the_store_late_is_closed_too_and_the_note_goes(
    store: StoreWithOutages, scene: Scene
) -> None:
    scene.live()
    await scene.settle()
    assert await scene.notes() == {ObservedKey(OURS, "team-a", "train", "c-1").key}
    scene.clusters.remove(TRAIN)
    scene.pods.remove(HEAD)
    await scene.settle()
    session = await put_session_of(store)
    await scene.settle(LATE_SECONDS)
    assert await closing_of(store, session) is not None
    assert await scene.notes() == set()


async def test_a_cluster_that_went_while_nobody_observed_is_closed_at_its_last_heartbeat(
    store: StoreWithOutages, scene: Scene
) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    beat_at = await put_head_beat(store, session)
    after = Scene(store)
    await after.closer.recall()
    await after.settle()
    closed = await closing_of(store, session)
    assert closed is not None
    assert (closed.reason, closed.closed_at) == (CLUSTER_DELETED, beat_at)


async def test_a_cluster_that_is_still_there_after_a_restart_stays_open(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    after = Scene(store)
    after.live()
    await after.closer.recall()
    await after.settle(LATE_SECONDS)
    assert await closing_of(store, session) is None
    assert len(await after.notes()) == 1


@pytest.mark.parametrize(
    ("observer", "namespaces"), [("another lease", ()), (OURS, ("team-b",))], ids=["another observer", "not watched"]
)
async def test_what_others_saw_and_what_cannot_be_seen_is_not_closed(
    store: StoreWithOutages, scene: Scene, observer: str, namespaces: tuple[str, ...]
) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    other = Scene(store, observer, namespaces)
    await other.closer.recall()
    await other.settle(LATE_SECONDS * 2)
    assert await closing_of(store, session) is None
    assert len(await scene.notes()) == 1


async def test_a_lost_head_is_told_from_a_suspended_cluster(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    scene.pods.put(pod("head", node_type="head", phase="Failed"))
    await scene.settle()
    closed = await closing_of(store, session)
    assert closed is not None
    assert closed.reason == HEAD_LOST

    resting = ClusterId("team-a", "rest", "c-2")
    rested = await put_session_of(store, resting)
    scene.live(resting)
    await scene.settle()
    scene.clusters.put(cluster(resting, spec={"suspend": True}))
    scene.pods.remove(ObjectKey("team-a", "rest-head"))
    await scene.settle()
    closed = await closing_of(store, rested)
    assert closed is not None
    assert closed.reason == CLUSTER_SUSPENDED


async def test_what_lost_its_head_stays_a_crash_when_the_cluster_is_deleted(
    store: StoreWithOutages, scene: Scene
) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    scene.pods.remove(HEAD)
    await scene.settle()
    scene.clusters.remove(TRAIN)
    await scene.settle()
    closed = await closing_of(store, session)
    assert closed is not None
    assert closed.reason == HEAD_LOST


async def test_a_session_that_went_on_after_a_lost_head_is_closed_again(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    scene.pods.remove(HEAD)
    await scene.settle()
    scene.pods.put(pod("head", node_type="head"))  # GCS fault tolerance: a new head under the old name
    await put_head_beat(store, session)
    await scene.settle()
    scene.clusters.remove(TRAIN)
    scene.pods.remove(HEAD)
    await scene.settle()
    closed = await closing_of(store, session)
    assert closed is not None
    assert closed.reason == CLUSTER_DELETED


async def test_a_head_that_was_replaced_within_seconds_closes_nothing(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    scene.pods.remove(HEAD)
    scene.pods.put(pod("head", node_type="head", phase="Pending"))
    await scene.settle()
    assert await closing_of(store, session) is None


async def test_an_outage_of_the_store_delays_the_closing(store: StoreWithOutages, scene: Scene) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    store.is_away = True
    scene.clusters.remove(TRAIN)
    scene.pods.remove(HEAD)
    await scene.settle()
    store.is_away = False
    assert await closing_of(store, session) is None
    await scene.settle(60)
    assert await closing_of(store, session) is not None


async def test_a_change_during_a_look_is_not_forgotten_over_it(
    store: StoreWithOutages, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    scene.clusters.remove(TRAIN)
    forgot = Notes.remove

    async def remove(self: Notes, cluster: ClusterId) -> None:
        scene.pods.put(pod("head", node_type="head", phase="Failed"))  # as late as it can be
        await forgot(self, cluster)

    monkeypatch.setattr(Notes, "remove", remove)
    await scene.settle(STUCK_SECONDS)
    await scene.settle(STUCK_SECONDS)
    await scene.settle(LATE_SECONDS)
    await scene.settle(LATE_SECONDS)
    assert await closing_of(store, session) is not None
    assert await scene.notes() == set()


async def test_notes_are_waited_for_while_the_store_is_away(store: StoreWithOutages) -> None:
    scene, after = Scene(store), Scene(store)
    session = await put_session_of(store)
    scene.live()
    await scene.settle()
    store.is_away = True
    recall = asyncio.create_task(after.closer.recall())
    await until(lambda: store.refused >= 3)
    assert not recall.done()
    store.is_away = False
    await recall
    await after.settle()
    assert await closing_of(store, session) is not None


async def test_a_record_that_names_somebody_elses_session_closes_nothing_of_theirs(tmp_path: Path) -> None:
    """Whoever may write below one namespace could have the observer write into any other."""
    store = StoreWithOutages(tmp_path)
    victim = await put_session_of(store, ClusterId("team-b", "victim", "uid-9"))
    mine = await put_session_of(store, CLUSTER)
    record = decode_record(await store.get(session_record_key(victim)), SessionRecord)
    forged = msgspec.structs.replace(record, cluster_uid=CLUSTER.uid)
    await store.put(session_record_key(mine), encode_record(forged))
    ends = SessionEnds(store, StoreClock(store, ManualClock()))
    assert not await ends.close(CLUSTER, Ending(CLUSTER_DELETED, None))
    assert await closing_of(store, victim) is None
