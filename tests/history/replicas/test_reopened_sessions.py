"""A session that was over goes on: under a new head with GCS fault tolerance, or because segments came late."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from raykeeper.layout.keys import CatalogKey, node_record_key
from raykeeper.layout.records import CatalogEnd, CatalogStart, NodeRecord, encode_record
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.clocks import ManualClock
from support.conditions import eventually
from support.ingest_scene import (
    HEAD,
    SESSION,
    START_NS,
    Event,
    base64_id,
    event,
    finished_task,
    local_store,
    put_records,
    put_segment,
    timestamp,
)
from support.whole_history import whole_server

NEW_HEAD = "dd" * 28
PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
LOOK_SECONDS = 60
ENDED_AT = datetime.now(UTC)


@pytest.fixture
async def store(tmp_path: Path) -> ObjectStore:
    """A session that ended gracefully, and is final."""
    store = local_store(tmp_path / "store")
    await put_segment(store, 0, [*node_events(HEAD, 1), *finished_task(1)])
    await put_records(store, ENDED_AT, is_ended=True)
    await announce(store, HEAD)
    end = CatalogEnd(ended_at=ENDED_AT, reason="terminated", head_node_id=HEAD)
    await store.put(CatalogKey(ENDED_AT.date(), SESSION, "end").key, encode_record(end))
    return store


async def announce(store: ObjectStore, head: str) -> None:
    """What a head's collector writes for lists of sessions."""
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    start = CatalogStart(**names, started_at=ENDED_AT, head_node_id=head)
    await store.put(CatalogKey(ENDED_AT.date(), SESSION, "start").key, encode_record(start))


def node_events(node: str, ns: int) -> list[Event]:
    alive = {"state": "ALIVE", "timestamp": timestamp(START_NS + ns), "resources": {"CPU": 2.0}}
    body = {"nodeId": base64_id(node), "nodeIpAddress": "10.0.0.1", "labels": {}}
    return [
        event("NODE_DEFINITION_EVENT", "nodeDefinitionEvent", body),
        event("NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", {"nodeId": body["nodeId"], "stateTransitions": [alive]}),
    ]


async def beat(store: ObjectStore, folder: Path, node: str) -> None:
    """A heartbeat of a head that stays fresh through the test, however much time passes in it."""
    now = datetime.now(UTC)
    record = NodeRecord(node_id=node, role="head", started_at=now, beat_at=now, interval_seconds=30)
    await store.put(node_record_key(SESSION, node), encode_record(record))
    os.utime(folder / node_record_key(SESSION, node), (time.time() + 1e6,) * 2)


async def states(app: ASGIApp) -> dict[str, str]:
    rows: list[dict[str, Any]] = (await ask(app, f"{PREFIX}/api/v0/nodes")).body["data"]["result"]["result"]
    return {row["node_id"]: row["state"] for row in rows}


async def tasks(app: ASGIApp) -> int:
    return int((await ask(app, f"{PREFIX}/api/v0/tasks")).body["data"]["result"]["total"])


async def seen_later(app: ASGIApp, clock: ManualClock) -> None:
    """Return once both tasks are listed; a final session is looked at every five minutes."""

    async def are_listed() -> bool:
        clock.advance(LOOK_SECONDS)
        return await tasks(app) == 2

    await eventually(are_listed)


async def test_a_restarted_head_of_the_same_session_goes_on_with_it(store: ObjectStore, tmp_path: Path) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    async with whole_server(store, SESSION, tmp_path / "local", clock=clock) as app:
        assert (await states(app), await tasks(app)) == ({HEAD: "DEAD"}, 1)
        await put_segment(store, 1, [*node_events(NEW_HEAD, 10), *finished_task(2)], NEW_HEAD)
        await announce(store, NEW_HEAD)
        await beat(store, tmp_path / "store", NEW_HEAD)
        await seen_later(app, clock)
        assert (await states(app))[NEW_HEAD] == "ALIVE"
        clusters = (await ask(app, "/clusters")).body
        assert [cluster["sessionName"] for cluster in clusters] == ["live"]  # one session, and it runs
        [listed] = (await ask(app, "/api/keeper/v1/sessions")).body["sessions"]
        assert (listed["session"], listed["state"]) == (SESSION.session, "running")


async def test_late_segments_of_a_final_session_are_in_the_next_answers(store: ObjectStore, tmp_path: Path) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    async with whole_server(store, SESSION, tmp_path / "local", clock=clock) as app:
        assert await tasks(app) == 1
        await put_segment(store, 1, finished_task(2))
        await seen_later(app, clock)
        assert await states(app) == {HEAD: "DEAD"}
