"""Overviews of sessions as a server opens them: from a store, with heartbeats, ends, measurements and losses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bench.sessions import STARTED, SessionSpec, node_ids, write_session
from raykeeper.clock import SystemClock
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.store import LogStore
from raykeeper.history.overview.facts import losses_of
from raykeeper.history.overview.session import session_overview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.layout.keys import PolledKey, end_record_key
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import Delivery, EndRecord, PolledAnswer, encode_record
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.history_scene import local_store

SPEC = SessionSpec(tasks=400, nodes=2)
MEASURED = "/nodes?view=summary"
GIB = 1 << 30


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SessionContext]:
    """The session in that folder's store, wholly read."""
    store, clock = local_store(folder / "store"), SystemClock()
    sessions, database = Sessions(store, clock, SessionsSettings(folder / "local")), Database(folder / "local")

    async def is_read() -> bool:
        return (await sessions.open(SPEC.id)).progress.is_done

    try:
        await eventually(is_read)
        yield SessionContext(await sessions.open(SPEC.id), database, LogStore(store, clock))
    finally:
        await sessions.close()
        await database.close()


async def put_measurement(store: ObjectStore, minutes: int, cpu_percent: float) -> None:
    polled_at = STARTED + timedelta(minutes=minutes)
    body = {"data": {"summary": [{"cpu": cpu_percent, "cpus": [16, 8], "mem": [64 * GIB, 0, 0, 8 * GIB]}]}}
    answer = PolledAnswer(path=MEASURED, polled_at=polled_at, status=200, body=msgspec.Raw(msgspec.json.encode(body)))
    key = PolledKey(SPEC.id, MEASURED, int(polled_at.timestamp() * 1000))
    await store.put(key.key, encode_polled(answer))


async def test_use_losses_and_the_end_come_from_the_store(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await write_session(store, SPEC)
    for minutes, cpu_percent in ((0, 50.0), (30, 100.0), (60, 0.0)):
        await put_measurement(store, minutes, cpu_percent)
    worker = node_ids(SPEC)[1]
    dropped = EndRecord(
        node_id=worker,
        role="worker",
        ended_at=STARTED + timedelta(minutes=1),
        reason="SIGTERM",
        is_complete=True,
        delivery=Delivery(ray_dropped_events=17),
    )
    await store.put(end_record_key(SPEC.id, worker), encode_record(dropped))
    async with opened(tmp_path) as context:
        overview = await session_overview(context)
    assert (overview.facts.state, overview.facts.unread_bytes, overview.counts.attempts) == ("ended", 0, 400)
    used = {row.name: row.used for row in overview.resources.rows if row.used is not None}
    assert overview.resources.samples == 3
    assert used == pytest.approx({"CPU": 16 * (0.75 + 0.5) / 2, "memory": 8})
    assert [loss.what for loss in overview.losses] == ["dropped by Ray"]
    assert "17 events" in overview.losses[0].text


async def test_late_data_and_odd_clocks_are_told(tmp_path: Path) -> None:
    await write_session(local_store(tmp_path / "store"), SPEC)
    async with opened(tmp_path) as context:
        session = context.session
    assert isinstance(session, Session)
    assert losses_of(session, 400) == ()
    behind = Delivery(unsent_event_bytes=100, unsent_log_bytes=20, oldest_unsent_seconds=95, batches_refused=2)
    head, worker = session.nodes
    nodes = (
        msgspec.structs.replace(head, hostname="ray-head", clock_offset_seconds=-2.5),
        msgspec.structs.replace(worker, clock_offset_seconds=0.2, delivery=behind),
    )
    ends = tuple(end for end in session.ends if end.node_id == head.node_id)
    told = [(loss.what, loss.text) for loss in losses_of(replace(session, nodes=nodes, ends=ends), 400)]
    assert ("late", "120 bytes of 1 node are not in the store yet, some for 95 s") in told
    assert any(what == "late" and text.startswith("2 batches were refused") for what, text in told)
    assert ("odd clock", "the clock of ray-head is 2.5 s behind the store's") in told
    assert sum(what == "odd clock" for what, _ in told) == 1


async def test_a_cluster_that_was_only_captured_says_why_there_is_no_time_line(tmp_path: Path) -> None:
    await write_session(local_store(tmp_path / "store"), SPEC)
    async with opened(tmp_path) as context:
        assert isinstance(context.session, Session)
        path = "/api/v0/tasks?detail=1&limit=10000"
        captured = replace(context.session, polled={path: PolledAnswer(path=path, polled_at=STARTED, status=200)})
    assert [loss.what for loss in losses_of(captured, 0)] == ["no events"]
    assert losses_of(captured, 400) == ()


async def test_an_answer_is_made_again_once_the_session_has_grown(tmp_path: Path) -> None:
    await write_session(local_store(tmp_path / "store"), SPEC)
    made: list[int] = []

    async def make() -> int:
        made.append(len(made))
        await asyncio.sleep(0)
        return made[-1]

    async with opened(tmp_path) as context:
        assert isinstance(context.session, Session)
        assert [await context.remembered("x", make) for _ in range(2)] == [0, 0]
        assert await context.remembered("y", make) == 1
        later = replace(context.session, as_of=STARTED)
        assert await replace(context, session=later).remembered("x", make) == 2
