"""Sessions are removed whole or not at all, whatever stops the sweeper, whoever holds, reads or writes meanwhile."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.history.retention.claims import Claims
from raykeeper.history.retention.holds import HoldFailed, find_hold, hold, release
from raykeeper.history.retention.metrics import RetentionMetrics
from raykeeper.history.retention.sweeper import Sweeper, SweepLoop, SweepResult
from raykeeper.history.retention.usage import read_usage
from raykeeper.history.retention_policy import Outcome, RetentionPolicy, Rule
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.records import find_record
from raykeeper.history.store.removals import SessionRemoved
from raykeeper.layout.alerts import AlertKey, session_alerts_prefix
from raykeeper.layout.keys import CatalogKey, EventSegmentKey, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.retention import Hold, RemovedRecord, begun_key, hold_key, intent_key, removed_key
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.errors import StoreRefused, StoreUnavailable
from raykeeper.storage.local.localstore import LocalStore
from support.clocks import ManualClock
from support.retention_scene import HEAD, SmallSession, keys_of, local_folder, retention_keys, week_policy

OLD = SmallSession("session_old")
KEPT = (
    SmallSession("session_young", age=timedelta(days=6)),
    SmallSession("session_failed", outcome="failed"),
    SmallSession("session_old_2", cluster="other", outcome=""),
    SmallSession("session_runs", has_ended=False),
)
LATER = timedelta(hours=1)


class Crash(BaseException):
    """The process died right there."""


class StoreOfMortals(LocalStore):
    """Lets so many writes pass; at the next one the process dies."""

    def __init__(self, folder: Path, writes: int | None = None) -> None:
        super().__init__(StoreSettings(LOCAL, str(folder)))
        self.passed = 0
        self._most = writes

    async def put(self, key: str, data: bytes) -> None:
        self._count(key)
        await super().put(key, data)

    async def create(self, key: str, data: bytes) -> bool:
        self._count(key)
        return await super().create(key, data)

    async def delete(self, key: str) -> None:
        self._count(key)
        await super().delete(key)

    def _count(self, key: str) -> None:
        if key.startswith("v1/clock/"):
            return
        if self.passed == self._most:
            raise Crash
        self.passed += 1


class LaterClock(StoreClock):
    """The store's clock as it will be."""

    def __init__(self, store: LocalStore, later: timedelta) -> None:
        super().__init__(store, SystemClock())
        self._later = later

    async def now(self) -> datetime:
        return await super().now() + self._later


def sweeper(store: LocalStore, policy: RetentionPolicy | None = None, store_clock: StoreClock | None = None) -> Sweeper:
    return Sweeper(store, SystemClock(), policy or week_policy(), "a test", store_clock=store_clock)


async def sweep_all(store: LocalStore, policy: RetentionPolicy | None = None) -> SweepResult:
    """Hide, then delete, which may take a moment by the store's clock."""
    one = sweeper(store, policy)
    result = await one.sweep()
    await finish(one, result)
    return result


async def finish(one: Sweeper, result: SweepResult) -> None:
    """Go on until nothing waits, but for readers that are given minutes."""
    for _ in range(20):
        result.waiting = 0
        await one.go_on(result)
        if not result.waiting:
            return
        await asyncio.sleep(0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for session in (OLD, *KEPT):
        session.put_into(tmp_path)
    return tmp_path


def keys_without(folder: Path, session: SmallSession, before: set[str]) -> set[str]:
    gone = session.objects(datetime.now(UTC)).keys()
    names = {key.rpartition("/")[2] for key in gone if key.startswith("v1/catalog/")}
    return {key for key in before if not key.startswith(session.id.prefix) and key.rpartition("/")[2] not in names}


async def test_an_old_session_goes_whole_and_every_other_object_stays(folder: Path) -> None:
    store = local_folder(folder)
    before = await keys_of(store)
    result = await sweep_all(store)
    assert (result.removed, result.bytes > 0) == (1, True)
    assert await keys_of(store) == keys_without(folder, OLD, before)
    record = await find_record(store, removed_key(OLD.id), RemovedRecord)
    assert record is not None
    assert (record.by, record.rule, record.objects) == ("a test", "default", 6)
    assert record.reason == "a session that succeeded is kept for 7 days"
    assert await retention_keys(store, "removals/") == set()


async def test_what_alerts_left_about_a_session_goes_with_it(folder: Path) -> None:
    store = local_folder(folder)
    marks = {session: AlertKey(session_alerts_prefix(session.id), "team", "job").claim(1) for session in (OLD, KEPT[0])}
    for key in marks.values():
        await store.create(key, b"{}")
    await sweep_all(store)
    assert await keys_of(store) & set(marks.values()) == {marks[KEPT[0]]}


async def test_a_crash_after_any_write_ends_the_same(tmp_path: Path) -> None:
    ends, writes = list[set[str]](), 0
    while True:
        folder = tmp_path / str(writes)
        for session in (OLD, *KEPT):
            session.put_into(folder)
        before = await keys_of(local_folder(folder))
        mortal, died = StoreOfMortals(folder, writes), False
        try:
            await sweep_all(mortal)
        except* Crash:
            died = True
        await sweep_all(local_folder(folder))
        store = local_folder(folder)
        assert await keys_of(store) == keys_without(folder, OLD, before), f"after {writes} writes"
        assert await retention_keys(store, "removals/") == set()
        ends.append(await retention_keys(store, "removed/"))
        if not died:
            break
        writes += 1
    assert writes > 15
    assert all(end == {removed_key(OLD.id)} for end in ends)


async def test_two_sweepers_at_once_remove_the_same(folder: Path) -> None:
    before = await keys_of(local_folder(folder))
    results = await asyncio.gather(*(sweep_all(local_folder(folder)) for _ in range(4)))
    assert sum(result.intended for result in results) == 1
    store = local_folder(folder)
    await sweep_all(store)
    assert await keys_of(store) == keys_without(folder, OLD, before)
    assert await retention_keys(store, "removals/") == set()


async def test_a_session_is_hidden_first_and_deleted_only_after_its_readers_had_their_time(folder: Path) -> None:
    store, policy = local_folder(folder), week_policy(reader_wait=timedelta(minutes=10))
    before = await keys_of(store)
    result = await sweep_all(store, policy)
    assert (result.intended, result.removed) == (1, 0)
    assert await keys_of(store) == before
    catalog = Catalog(store, SystemClock())
    assert OLD.id not in {entry.id for entry in (await catalog.page(100)).entries}
    assert (await catalog.newest_of_cluster("team-a", "train")) != OLD.id
    with pytest.raises(SessionRemoved, match=r"removed by retention on .*, rule 'default': a session that succeeded"):
        await catalog.is_known(OLD.id)
    later = LaterClock(store, timedelta(minutes=11))
    done = SweepResult()
    await sweeper(store, policy, later).go_on(done)
    assert done.removed == 1
    with pytest.raises(SessionRemoved):
        await Catalog(store, SystemClock()).is_known(OLD.id)


async def test_a_server_that_knew_the_session_does_not_show_it_from_memory(folder: Path) -> None:
    store = local_folder(folder)
    clock = ManualClock(now=datetime.now(UTC))
    catalog = Catalog(store, clock)
    assert await catalog.is_known(OLD.id)
    one = sweeper(store)
    await one.sweep()
    clock.advance(5)
    assert OLD.id not in {entry.id for entry in (await catalog.page(100)).entries}
    await finish(one, SweepResult())
    clock.advance(5)
    with pytest.raises(SessionRemoved):
        await catalog.is_known(OLD.id)


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_held_session_stays_whenever_the_hold_was_confirmed(folder: Path, *, has_begun: bool) -> None:
    store = local_folder(folder)
    before = await keys_of(store)
    await sweeper(store).sweep()
    assert await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "me", "a lawsuit")
    if has_begun:  # by a sweeper that was killed right after
        await store.create(begun_key(OLD.id), b"{}")
    result = SweepResult()
    await finish(sweeper(store), result)
    assert (result.withdrawn, result.removed) == (1, 0)
    assert await keys_of(store) == before
    assert await retention_keys(store, "removals/") == set()
    assert (await sweep_all(store)).intended == 0
    assert await release(store, OLD.id)
    assert (await sweep_all(store)).removed == 1


async def test_a_hold_comes_too_late_once_deletion_has_begun(folder: Path) -> None:
    store = local_folder(folder)
    await sweeper(store).sweep()
    await store.create(begun_key(OLD.id), b"{}")
    with pytest.raises(HoldFailed, match="too late"):
        await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "me", "")
    assert await find_hold(store, OLD.id) is None
    assert (await sweep_all(store)).removed == 1
    with pytest.raises(HoldFailed, match="was removed"):
        await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "me", "")


async def test_what_came_after_a_removal_is_no_session_to_hold(folder: Path) -> None:
    store = local_folder(folder)
    assert (await sweep_all(store)).removed == 1
    await store.put(f"{OLD.id.prefix}session.json", b"late")
    with pytest.raises(HoldFailed, match="was removed"):
        await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "me", "")
    assert await find_hold(store, OLD.id) is None


async def test_a_hold_that_was_never_confirmed_delays_deletion_for_minutes_and_not_for_ever(folder: Path) -> None:
    store = local_folder(folder)
    await sweeper(store).sweep()
    await store.create(begun_key(OLD.id), b"{}")
    await store.create(hold_key(OLD.id), encode_record(Hold(at=datetime.now(UTC))))  # its holder was killed
    result = SweepResult()
    await sweeper(store).go_on(result)
    assert (result.waiting, result.removed) == (1, 0)
    await sweeper(store, store_clock=LaterClock(store, timedelta(minutes=6))).go_on(result)
    assert result.removed == 1


async def test_a_hold_left_by_a_killed_holder_can_be_taken_again(folder: Path) -> None:
    store = local_folder(folder)
    await store.create(hold_key(OLD.id), encode_record(Hold(at=datetime.now(UTC))))
    with pytest.raises(HoldFailed, match="try again"):
        await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "me", "")
    assert await hold(store, SystemClock(), LaterClock(store, timedelta(minutes=6)), OLD.id, "me", "")
    assert not await hold(store, SystemClock(), StoreClock(store, SystemClock()), OLD.id, "you", "")


async def test_a_late_segment_reopens_a_session_that_is_only_hidden(folder: Path) -> None:
    store = local_folder(folder)
    await sweeper(store).sweep()
    late = EventSegmentKey(OLD.id, HEAD, 1_800_000_000_000_000_000, 0).key
    await store.put(late, b"late")
    result = SweepResult()
    await finish(sweeper(store), result)
    assert (result.withdrawn, result.removed) == (1, 0)
    assert late in await keys_of(store)
    assert (await sweep_all(store)).intended == 0  # it is young again


async def test_what_comes_after_a_removal_is_deleted_by_the_next_sweep(folder: Path) -> None:
    store = local_folder(folder)
    await sweep_all(store)
    before = await keys_of(store)
    day = datetime.now(UTC).date() - timedelta(days=8)
    await store.put(EventSegmentKey(OLD.id, HEAD, 1_800_000_000_000_000_000, 0).key, b"late")
    await store.put(CatalogKey(day, OLD.id, "summary").key, b"{}")  # of a server that had the session open
    result = await sweep_all(store)
    assert result.late_objects == 1
    assert {key for key in await keys_of(store) if OLD.id.prefix in key} == set()
    assert before == await keys_of(store) - {CatalogKey(day, OLD.id, "summary").key}


async def test_a_head_that_goes_on_with_a_removed_session_brings_it_back(folder: Path) -> None:
    store = local_folder(folder)
    await sweep_all(store)
    again = SmallSession(OLD.name, age=timedelta(days=8), has_ended=False, outcome="")
    await again.put(store)
    await sweep_all(store)
    assert await store.find(removed_key(OLD.id)) is None
    assert await Catalog(store, SystemClock()).is_known(OLD.id)


async def test_records_of_removals_are_forgotten_after_their_time(folder: Path) -> None:
    store, policy = local_folder(folder), week_policy(records=timedelta(days=30))
    await sweep_all(store, policy)
    await store.put(EventSegmentKey(OLD.id, HEAD, 1_800_000_000_000_000_000, 0).key, b"late")
    await sweeper(store, policy, LaterClock(store, timedelta(days=31))).sweep()
    assert removed_key(OLD.id) not in await retention_keys(store, "removed/")
    assert {key for key in await keys_of(store) if key.startswith(OLD.id.prefix)} == set()


async def test_compacted_days_do_not_bring_a_session_back(tmp_path: Path) -> None:
    for number in range(40):
        SmallSession(f"session_{number:02}", outcome="failed" if number % 2 else "ok").put_into(tmp_path)
    store = local_folder(tmp_path)
    await Catalog(store, SystemClock()).page(100)  # compacts the day
    assert any("compacted-" in key for key in await keys_of(store))
    result = await sweep_all(store)
    assert result.removed == 20
    assert not any("compacted-" in key for key in await keys_of(store))
    catalog = Catalog(store, SystemClock())
    assert {entry.id.session for entry in (await catalog.page(100)).entries} == {
        f"session_{number:02}" for number in range(1, 40, 2)
    }
    names = b"".join([await store.get(key) for key in await retention_keys(store, "days/")])
    assert b"session_00" not in names


async def test_sizes_are_measured_once_and_added_up_by_namespace(folder: Path) -> None:
    SmallSession("session_b", "team-b", outcome="failed", segments=9).put_into(folder)
    store = local_folder(folder)
    await sweep_all(store)
    usage = await read_usage(store)
    assert usage is not None
    told = {one.namespace: (one.sessions, one.objects, one.unmeasured) for one in usage.namespaces}
    assert told == {"team-b": (1, 13, 0), "team-a": (5, 28, 0)}
    assert usage.namespaces[0].oldest is not None
    after = await sweeper(store).sweep()  # the old session is gone by now
    assert after.usage is not None
    stored = sum([stat.size async for stat in store.list("v1/data/")])
    assert sum(one.bytes for one in after.usage.namespaces) == stored


async def test_a_summary_that_came_meanwhile_keeps_a_failed_session(folder: Path) -> None:
    store = local_folder(folder)
    await sweeper(store, week_policy(default=Rule("default"))).sweep()  # what is known is remembered
    failed = SmallSession(OLD.name, outcome="failed")
    for key, data in failed.objects(datetime.now(UTC)).items():
        if key.endswith(".summary.json"):
            path = next((folder / "v1/catalog").rglob("*session_old.summary.json"))
            path.write_bytes(data)
    assert (await sweep_all(store)).intended == 0


async def test_nothing_happens_where_the_store_does_not_answer(folder: Path) -> None:
    class Broken(LocalStore):
        async def create(self, key: str, data: bytes) -> bool:
            raise StoreUnavailable("local", key, "no answer")

    before = await keys_of(local_folder(folder))
    with pytest.raises(StoreUnavailable):
        await sweep_all(Broken(StoreSettings(LOCAL, str(folder))))
    assert await keys_of(local_folder(folder)) == before


async def test_of_several_replicas_one_has_the_turn_until_its_stretch_is_over(tmp_path: Path) -> None:
    store, now = local_folder(tmp_path), [1000.0]

    class Moved:
        def steady(self) -> float:
            return now[0]

        def now(self) -> datetime:
            return datetime.fromtimestamp(now[0], UTC)

    class MovedStoreClock(StoreClock):
        async def now(self) -> datetime:
            return datetime.fromtimestamp(now[0], UTC)

    def candidate(name: str) -> Claims:
        return Claims(store, Moved(), MovedStoreClock(store, Moved()), name, timedelta(seconds=300))

    first, second, third = candidate("a"), candidate("b"), candidate("c")
    assert [await one.take() for one in (first, second, third)] == [True, False, False]
    now[0] += 100
    assert [await one.take() for one in (first, second)] == [True, False]
    now[0] = 1150.0  # its stretch ends at 1200: it may claim the next one
    assert await first.take()
    now[0] = 1250.0
    assert [await one.take() for one in (second, first)] == [False, True]
    now[0] = 1600.0  # it was paused, or killed
    assert not first.is_ours
    assert [await one.take() for one in (second, first)] == [True, False]
    now[0] = 9000.0
    assert await third.take()
    assert len(await retention_keys(store, "claims/")) == 1


def _policy_of(make: Callable[[], Rule]) -> RetentionPolicy:
    return RetentionPolicy(default=make(), reader_wait=timedelta(0))


async def test_a_count_removes_the_oldest(tmp_path: Path) -> None:
    sessions = [SmallSession(f"session_{day}", age=timedelta(days=day), outcome="failed") for day in range(1, 7)]
    for session in sessions:
        session.put_into(tmp_path)
    store = local_folder(tmp_path)
    result = await sweep_all(store, _policy_of(lambda: Rule("r", ages={Outcome.FAILED: LATER * 10**4}, max_sessions=2)))
    assert result.removed == 4
    page = await Catalog(store, SystemClock()).page(10)
    assert [entry.id for entry in page.entries] == [SessionId("team-a", "train", f"session_{day}") for day in (1, 2)]


async def test_a_session_of_the_kuberay_layout_is_left_alone(tmp_path: Path) -> None:
    marker = tmp_path / "cluster-metadata/raycluster/team-a_train/session_2020-01-01_00-00-00_000000_1"
    data = tmp_path / "cluster-history/raycluster/team-a/train/session_2020-01-01_00-00-00_000000_1/n/logs/x.log"
    for file in (marker, data):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
    result = await sweep_all(local_folder(tmp_path))
    assert (result.intended, marker.exists(), data.exists()) == (0, True, True)


class Locked(LocalStore):
    """Nobody may delete what is under this prefix."""

    locked = SmallSession("session_locked", age=timedelta(days=30)).id.prefix

    async def delete(self, key: str) -> None:
        if self.locked and key.startswith(self.locked):
            raise StoreRefused("local", key, "AccessDenied", "it is locked")
        await super().delete(key)


async def test_an_object_that_may_not_be_deleted_stops_no_other_removal(folder: Path) -> None:
    SmallSession("session_locked", age=timedelta(days=30)).put_into(folder)
    store = Locked(StoreSettings(LOCAL, str(folder)))
    result = await sweep_all(store)
    assert (result.removed, result.refused > 0) == (1, True)
    assert not any(key.startswith(OLD.id.prefix) for key in await keys_of(store))
    store.locked = ""
    assert (await sweep_all(store)).removed == 1


async def test_what_was_decided_on_by_a_clock_of_the_future_is_taken_back(folder: Path) -> None:
    store, policy = local_folder(folder), week_policy(reader_wait=timedelta(minutes=10))
    hidden = await sweeper(store, policy, LaterClock(store, timedelta(days=3650))).sweep()
    assert hidden.intended == 5, "even the one that runs: it was not heard of for ten years"
    for intent in (folder / "v1/retention/removals").iterdir():
        os.utime(intent, (time.time() + 86400 * 3650,) * 2)
    result = SweepResult()
    await sweeper(store, policy).go_on(result)
    assert (result.withdrawn, await retention_keys(store, "removals/")) == (5, set())


class MovableClock(StoreClock):
    """The store's clock, as far ahead as a test wants."""

    ahead = timedelta(0)

    async def now(self) -> datetime:
        return await super().now() + self.ahead


async def test_a_clock_that_jumps_ahead_removes_nothing_for_a_day(folder: Path) -> None:
    store, clock = local_folder(folder), ManualClock(now=datetime.now(UTC))
    store_clock = MovableClock(store, SystemClock())
    policy = week_policy(reader_wait=timedelta(minutes=10))
    loop = SweepLoop(store, clock, policy, "a", RetentionMetrics(CollectorRegistry()), lambda: True, None, store_clock)

    async def hidden_after(time_passed: timedelta) -> int:
        store_clock.ahead += time_passed
        clock.advance(time_passed.total_seconds())
        await loop.turn()
        return len(await retention_keys(store, "removals/"))

    assert await hidden_after(timedelta(0)) == 1
    store_clock.ahead += timedelta(days=3650)
    assert await hidden_after(timedelta(hours=2)) == 0, "it goes on with what was decided on, and deletes that"
    assert await hidden_after(timedelta(hours=20)) == 0
    assert await hidden_after(timedelta(hours=5)) == 4, "nobody set the clock right, so that is what time it is"


async def test_sessions_that_nobody_read_are_read_before_they_are_judged(tmp_path: Path) -> None:
    unread = [SmallSession(f"session_{number}", outcome="") for number in range(4)]
    for session in unread:
        session.put_into(tmp_path)
    store, read = local_folder(tmp_path), list[str]()
    outcomes = {"session_0": "ok", "session_1": "failed", "session_2": "ok"}

    async def read_to_end(session: SessionId) -> None:
        read.append(session.session)
        if session.session not in outcomes:
            raise StoreUnavailable("local", str(session), "it is damaged")
        known = SmallSession(session.session, outcome=outcomes[session.session])
        for key, data in known.objects(datetime.now(UTC)).items():
            if key.endswith(".summary.json"):
                path = next((tmp_path / "v1/catalog").rglob(f"*{session.session}.start.json"))
                path.with_name(path.name.replace(".start.", ".summary.")).write_bytes(data)

    one = Sweeper(store, SystemClock(), week_policy(), "a test", read_to_end=read_to_end)
    result = await one.sweep()
    assert sorted(read) == [session.name for session in unread]
    assert result.intended == 2
    await finish(one, result)
    await one.sweep()
    assert len(read) == 4, "what cannot be read is not tried by each sweep"
    left = {key.split("/")[4] for key in await keys_of(store) if key.startswith("v1/data/")}
    assert left == {"session_1", "session_3"}


async def test_one_sweep_has_so_many_sessions_read_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        SmallSession(f"session_{number}", outcome="").put_into(tmp_path)
    read = list[SessionId]()

    async def read_to_end(session: SessionId) -> None:
        read.append(session)

    monkeypatch.setattr("raykeeper.history.retention.sweeper.READ_A_SWEEP", 2)
    one = Sweeper(local_folder(tmp_path), SystemClock(), week_policy(), "a test", read_to_end=read_to_end)
    for number in (2, 4, 5):
        await one.sweep()
        assert len(set(read)) == len(read) == number


async def test_damaged_marks_neither_stop_a_sweep_nor_remove_anything(folder: Path) -> None:
    store = local_folder(folder)
    kept = KEPT[1].id
    await store.put(intent_key(kept), b"\xff not json")
    await store.put("v1/retention/removals/what~is.json", b"{}")
    await store.put(removed_key(KEPT[0].id), b"[]")
    before = {key for key in await keys_of(store) if key.startswith(kept.prefix)}
    await sweep_all(store)
    assert before == {key for key in await keys_of(store) if key.startswith(kept.prefix)}
    assert intent_key(kept) not in await retention_keys(store, "removals/")
