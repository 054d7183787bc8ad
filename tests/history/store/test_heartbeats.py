"""The state of a session by what is in a store, by the store's clock."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import closed_record_key, end_record_key, node_record_key
from raykeeper.layout.records import HEAD_LOST, ClosedRecord, encode_record
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.history_scene import HEAD_ID, SESSION, WORKER_ID, local_store, put_beat, put_end, put_session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def store(folder: Path) -> ObjectStore:
    store = local_store(folder)
    await put_session(store)
    return store


@pytest.fixture
def clock() -> ManualClock:
    """A clock of a machine that is an hour behind the store's."""
    return ManualClock(now=datetime.fromtimestamp(time.time() - 3600, UTC))


@pytest.fixture
def heartbeats(store: ObjectStore, clock: ManualClock) -> Heartbeats:
    return Heartbeats(store, clock, StoreClock(store, clock))


def age(folder: Path, key: str, seconds: float) -> None:
    """Let an object be that old by the store's clock."""
    then = time.time() - seconds
    os.utime(folder / key, (then, then))


async def test_a_session_whose_head_beats_runs_whatever_this_machines_clock_says(
    store: ObjectStore, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    state = await heartbeats.state(SESSION)
    assert (state.state, state.is_final) == (State.RUNNING, False)


async def test_a_head_that_fell_silent_crashed_though_its_workers_live(
    store: ObjectStore, folder: Path, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    await put_beat(store, WORKER_ID, "worker")
    age(folder, node_record_key(SESSION, HEAD_ID), 100)
    assert (await heartbeats.state(SESSION)).state is State.CRASHED


async def test_a_new_head_under_the_same_session_makes_it_run_again(
    store: ObjectStore, folder: Path, clock: ManualClock, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    await put_end(store)
    age(folder, node_record_key(SESSION, HEAD_ID), 1000)
    state = await heartbeats.state(SESSION)
    assert (state.state, state.is_final) == (State.ENDED, True)
    await put_beat(store, "cc" * 28)
    clock.advance(600)
    age(folder, node_record_key(SESSION, "cc" * 28), -600)
    assert (await heartbeats.state(SESSION)).state is State.RUNNING


async def test_a_heartbeat_after_an_end_takes_it_back(store: ObjectStore, folder: Path, heartbeats: Heartbeats) -> None:
    await put_end(store)
    age(folder, end_record_key(SESSION, HEAD_ID), 60)
    await put_beat(store)
    assert (await heartbeats.state(SESSION)).state is State.RUNNING


async def test_the_observer_ends_a_session_whose_head_never_said_goodbye(
    store: ObjectStore, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    record = ClosedRecord(closed_at=datetime.now(UTC), reason="cluster deleted", cluster_uid="u")
    await store.put(closed_record_key(SESSION), encode_record(record))
    assert (await heartbeats.state(SESSION)).state is State.ENDED


async def test_a_session_whose_head_the_observer_saw_lost_crashed_at_once(
    store: ObjectStore, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    record = ClosedRecord(closed_at=datetime.now(UTC), reason=HEAD_LOST, cluster_uid="u")
    await store.put(closed_record_key(SESSION), encode_record(record))
    assert (await heartbeats.state(SESSION)).state is State.CRASHED


async def test_a_record_of_the_end_that_cannot_be_read_is_an_end_all_the_same(
    store: ObjectStore, heartbeats: Heartbeats
) -> None:
    await put_beat(store)
    await store.put(closed_record_key(SESSION), b"{")
    assert (await heartbeats.state(SESSION)).state is State.ENDED


async def test_an_unreadable_node_record_is_not_taken_for_a_head(store: ObjectStore, heartbeats: Heartbeats) -> None:
    await store.put(node_record_key(SESSION, HEAD_ID), b"{")
    assert (await heartbeats.state(SESSION)).state is State.UNKNOWN


async def test_nothing_is_left_of_comparing_clocks(store: ObjectStore, heartbeats: Heartbeats) -> None:
    await put_beat(store)
    await heartbeats.state(SESSION)
    assert [stat.key async for stat in store.list("v1/clock/")] == []
