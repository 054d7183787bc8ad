"""The list of sessions and whatever opens one judge alike: both read the same records by the same rule."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.ingest.records import RecordReader
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import closed_record_key, end_record_key, node_record_key
from raykeeper.layout.records import (
    CLUSTER_DELETED,
    RAYLET_KILLED,
    ClosedRecord,
    EndRecord,
    NodeRecord,
    Record,
    encode_record,
)
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.history_scene import HEAD_ID, SESSION, local_store, put_session

SECOND_HEAD = "cc" * 28


class Told:
    """Records of nodes, each as old as the story wants it."""

    def __init__(self, store: ObjectStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self.now = datetime.now(UTC)  # the store goes by the machine's clock
        self.records: list[tuple[str, Record, float]] = []

    def beat(self, node_id: str, ago: float, gone_ago: float | None = None) -> None:
        record = NodeRecord(
            node_id=node_id,
            role="head",
            started_at=self.now - timedelta(hours=1),
            beat_at=self.now - timedelta(seconds=ago),
            interval_seconds=10,
            raylet_gone_at=None if gone_ago is None else self.now - timedelta(seconds=gone_ago),
            was_raylet_killed=gone_ago is not None,
        )
        self.records.append((node_record_key(SESSION, node_id), record, ago))

    def end(self, node_id: str, ago: float, reason: str = "terminated") -> None:
        ended_at = self.now - timedelta(seconds=ago)
        record = EndRecord(node_id=node_id, role="head", ended_at=ended_at, reason=reason, is_complete=True)
        self.records.append((end_record_key(SESSION, node_id), record, ago))

    def close(self, ago: float, reason: str) -> None:
        record = ClosedRecord(closed_at=self.now - timedelta(seconds=ago), reason=reason, cluster_uid="u")
        self.records.append((closed_record_key(SESSION), record, ago))

    async def write(self) -> None:
        for key, record, ago in self.records:
            await self._store.put(key, encode_record(record))
            os.utime(self._folder / key, (self.now.timestamp() - ago,) * 2)


def a_killed_second_head(told: Told) -> None:
    told.beat(HEAD_ID, 900)
    told.end(HEAD_ID, 900)
    told.beat(SECOND_HEAD, 400)


def a_second_head_whose_raylet_was_killed(told: Told) -> None:
    told.beat(HEAD_ID, 900)
    told.end(HEAD_ID, 900)
    told.beat(SECOND_HEAD, 30, gone_ago=31)


def a_collector_restarted_alone(told: Told) -> None:
    told.end(HEAD_ID, 60)
    told.beat(HEAD_ID, 5)


def a_crash_whose_cluster_was_deleted_later(told: Told) -> None:
    told.beat(HEAD_ID, 3000, gone_ago=3001)
    told.close(20, CLUSTER_DELETED)


def a_crash_whose_collector_ended_later(told: Told) -> None:
    told.beat(HEAD_ID, 20, gone_ago=3001)
    told.end(HEAD_ID, 19, RAYLET_KILLED)


@pytest.mark.parametrize(
    ("story", "state"),
    [
        (a_killed_second_head, State.CRASHED),
        (a_second_head_whose_raylet_was_killed, State.CRASHED),
        (a_collector_restarted_alone, State.RUNNING),
        (a_crash_whose_cluster_was_deleted_later, State.CRASHED),
        (a_crash_whose_collector_ended_later, State.CRASHED),
    ],
)
async def test_a_list_and_an_opened_session_agree(story: Callable[[Told], None], state: State, tmp_path: Path) -> None:
    store = local_store(tmp_path)
    await put_session(store)
    told = Told(store, tmp_path)
    clock = ManualClock(now=told.now)
    story(told)
    await told.write()
    listed = await Heartbeats(store, clock, StoreClock(store, clock)).state(SESSION)
    opened = (await RecordReader(store, SESSION).read()).state(await StoreClock(store, clock).now())
    assert listed.state is state
    assert opened == listed
