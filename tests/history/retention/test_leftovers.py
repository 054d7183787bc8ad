"""What is left of clusters and RayJobs without a session goes by its age; whatever a session needs stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history.retention.test_removal import Crash, StoreOfMortals, sweep_all, sweeper
from raykeeper.history.retention import leftovers
from raykeeper.history.retention.holds import hold
from raykeeper.history.retention_policy import RetentionPolicy, Rule
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.alerts import AlertKey, rayjob_alerts_prefix
from raykeeper.layout.keys import ClusterId, KubeFactsKey, ObservedKey, RayJobId, SessionId, session_record_key
from raykeeper.layout.kube_facts import ClusterFact, encode_facts
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import SessionRecord, encode_record
from support.clocks import ManualClock
from support.retention_scene import SmallSession, keys_of, local_folder, week_policy

NOW = datetime.now(UTC)
OLD, YOUNG = timedelta(days=100), timedelta(days=80)
"""Of what nobody knows how it went: it is kept as long as failures, for 90 days."""
CLUSTER = ClusterId("team-a", "nightly-x1", "uid-1")
RAYJOB = RayJobId("team-a", "nightly", "uid-9")


def put(folder: Path, key: str, data: bytes, age: timedelta) -> str:
    path = folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    at = (NOW - age).timestamp()
    os.utime(path, (at, at))
    return key


def put_facts(folder: Path, cluster: ClusterId = CLUSTER, age: timedelta = OLD, segments: int = 3) -> set[str]:
    """Segments of a cluster, the newest of which has that age."""
    data = encode_facts([ClusterFact(at=NOW, uid=cluster.uid, name=cluster.cluster)])
    ages = [age + timedelta(hours=number) for number in range(segments)]
    return {
        put(
            folder,
            KubeFactsKey(cluster.namespace, cluster.cluster, cluster.uid, int((NOW - one).timestamp() * 1e9)).key,
            data,
            one,
        )
        for one in ages
    }


def put_rayjob(
    folder: Path, id_: RayJobId = RAYJOB, status: str = "Failed", age: timedelta = OLD, cluster: str = CLUSTER.cluster
) -> set[str]:
    """A record, its mark under the cluster that it had, and an alert that was sent."""
    states = (RayJobState(at=NOW - age, deployment_status=status),)
    record = RayJobRecord(namespace=id_.namespace, name=id_.rayjob, uid=id_.uid, states=states, clusters=(cluster,))
    alert = AlertKey(rayjob_alerts_prefix(id_), "slack", id_.rayjob).sent
    return {
        put(folder, id_.cluster_key(cluster), b"", age),
        put(folder, alert, b"{}", age),
        put(folder, id_.key, encode_record(record), age),
    }


def put_session_of(folder: Path, cluster: ClusterId, uid: str) -> set[str]:
    """The record of a session of that cluster's name, which is all that is looked at."""
    session = SessionId(cluster.namespace, cluster.cluster, "session_1")
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    record = SessionRecord(**names, started_at=NOW, recorded_at=NOW, cluster_uid=uid)
    return {put(folder, session_record_key(session), encode_record(record), OLD)}


async def left_after_sweep(folder: Path, policy: RetentionPolicy | None = None) -> set[str]:
    store = local_folder(folder)
    await sweep_all(store, policy)
    return await keys_of(store)


async def test_facts_of_a_cluster_without_a_session_go_once_they_are_old(tmp_path: Path) -> None:
    put_facts(tmp_path)
    young = put_facts(tmp_path, ClusterId("team-a", "nightly-x2", "uid-2"), YOUNG)
    assert await left_after_sweep(tmp_path) == young


async def test_facts_stay_where_everything_is_kept_for_ever(tmp_path: Path) -> None:
    kept = put_facts(tmp_path) | put_rayjob(tmp_path)
    assert await left_after_sweep(tmp_path, RetentionPolicy(default=Rule("default"))) == kept


async def test_a_session_keeps_the_facts_of_its_own_cluster_alone(tmp_path: Path) -> None:
    """Another cluster had the same name before."""
    former = ClusterId(CLUSTER.namespace, CLUSTER.cluster, "uid-0")
    put_facts(tmp_path, former)
    kept = put_facts(tmp_path) | put_session_of(tmp_path, CLUSTER, CLUSTER.uid)
    assert await left_after_sweep(tmp_path) == kept


async def test_a_session_that_does_not_say_whose_it_is_keeps_all(tmp_path: Path) -> None:
    kept = put_facts(tmp_path) | put_session_of(tmp_path, CLUSTER, "")
    assert await left_after_sweep(tmp_path) == kept


async def test_a_cluster_that_an_observer_still_watches_keeps_its_facts(tmp_path: Path) -> None:
    note = ObservedKey("lease", CLUSTER.namespace, CLUSTER.cluster, CLUSTER.uid).key
    kept = put_facts(tmp_path) | {put(tmp_path, note, b"", OLD)}
    assert await left_after_sweep(tmp_path) == kept


async def test_a_held_session_keeps_facts_and_rayjobs_of_its_cluster(tmp_path: Path) -> None:
    session = SmallSession("session_held", cluster=CLUSTER.cluster, age=OLD, outcome="failed")
    kept = set(session.put_into(tmp_path)) | put_facts(tmp_path) | put_rayjob(tmp_path)
    store, clock = local_folder(tmp_path), ManualClock()
    await hold(store, clock, StoreClock(store, clock), session.id, "me", "an audit")
    assert await left_after_sweep(tmp_path) == kept


async def test_when_the_last_session_of_a_cluster_goes_its_facts_go_with_the_next_sweep(tmp_path: Path) -> None:
    SmallSession("session_1", cluster=CLUSTER.cluster, age=OLD, outcome="failed").put_into(tmp_path)
    put_facts(tmp_path)
    put_rayjob(tmp_path)
    await left_after_sweep(tmp_path)
    assert await left_after_sweep(tmp_path) == set()


@pytest.mark.parametrize(
    ("status", "days", "stays"),
    [("Complete", 6, True), ("Complete", 9, False), ("Failed", 89, True), ("Failed", 91, False), ("Running", 89, True)],
)
async def test_a_rayjob_goes_by_the_age_of_its_outcome(status: str, days: int, stays: bool, tmp_path: Path) -> None:
    put_in = put_rayjob(tmp_path, status=status, age=timedelta(days=days))
    assert await left_after_sweep(tmp_path) == (put_in if stays else set())


async def test_a_sent_alert_is_remembered_for_as_long_as_alerts_look_back(tmp_path: Path) -> None:
    kept = put_rayjob(tmp_path, status="Complete", age=timedelta(days=7, hours=12))
    assert await left_after_sweep(tmp_path) == kept


async def test_a_rayjob_whose_end_nobody_saw_stays_while_it_is_watched(tmp_path: Path) -> None:
    kept = put_rayjob(tmp_path, status="Running") | {put(tmp_path, RAYJOB.note_key("lease"), b"", OLD)}
    assert await left_after_sweep(tmp_path) == kept
    (tmp_path / RAYJOB.note_key("lease")).unlink()
    assert await left_after_sweep(tmp_path) == set()


async def test_a_session_of_its_cluster_keeps_a_rayjob(tmp_path: Path) -> None:
    kept = put_rayjob(tmp_path) | put_session_of(tmp_path, CLUSTER, "uid-other")
    assert await left_after_sweep(tmp_path) == kept


async def test_a_sweeper_that_dies_anywhere_leaves_what_the_next_one_finds(tmp_path: Path) -> None:
    writes = 0
    while True:
        folder = tmp_path / str(writes)
        folder.mkdir()
        put_facts(folder)
        put_rayjob(folder)
        mortal = StoreOfMortals(folder, writes)
        try:
            await sweeper(mortal).sweep()
        except Crash:
            writes += 1
        else:
            break
        assert await left_after_sweep(folder) == set()
    assert writes > 6, "it died at each of the objects"


async def test_each_sweep_looks_at_some_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "NAMES_A_SWEEP", 16)
    for number in range(40):
        put_facts(tmp_path, ClusterId("team-a", f"nightly-{number:02d}", "uid"), segments=1)
        put_rayjob(tmp_path, RayJobId(f"team-{number % 3}", f"nightly-{number:02d}", "uid"))
    store = local_folder(tmp_path)
    one, left = sweeper(store), [len(await keys_of(store))]
    while left[-1] and len(left) < 9:
        await one.sweep()
        left.append(len(await keys_of(store)))
    assert left[-1] == 0
    assert len(left) == 4, "sixteen of each in a sweep"


async def test_a_dry_run_counts_and_removes_nothing(tmp_path: Path) -> None:
    before = put_facts(tmp_path) | put_rayjob(tmp_path)
    store = local_folder(tmp_path)
    found = (await sweeper(store, week_policy()).dry_run(lambda _: None)).leftovers
    assert (found.clusters, found.rayjobs, found.objects) == (1, 1, len(before))
    assert await keys_of(store) == before
