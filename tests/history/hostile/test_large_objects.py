"""Whoever may write into a bucket decides how large an object is: none is read whole that no collector writes so large.

Each of these ended the server for everybody: three gigabytes of memory for one object, several at a time.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from history.hostile.attacked_server import TASKS, AttackedServer, attacked_server, put_ended_session
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    KubeFactsKey,
    LogIndexKey,
    LogPackKey,
    PolledKey,
    SessionId,
    closed_record_key,
    end_record_key,
    manifest_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import SessionRecord, encode_record
from support.history_scene import HEAD_ID, SEALED_NS, SESSION, STARTED_AT, local_store, session_url

MEMORY_LIMIT_BYTES = 400 << 20
LARGE_BYTES = 3 << 30
UID = "11111111-2222-3333-4444-555555555555"
PAGES = ("/report", "/api/jobs/", "/nodes?view=summary", "/api/v0/tasks", "/api/v0/nodes", "/logical/actors")


def hostile(number: int) -> SessionId:
    return SessionId("attacker", f"c-{number}", "session_2026-11-15_20-00-00_000000_6")


def keys_of(session: SessionId) -> list[str]:
    """One of each kind that a server reads whole."""
    return [
        session_record_key(session),
        closed_record_key(session),
        node_record_key(session, HEAD_ID),
        end_record_key(session, HEAD_ID),
        CatalogKey(STARTED_AT.date(), session, "start").key,
        CatalogKey(STARTED_AT.date(), session, "summary").key,
        PolledKey(session, "/api/jobs/", 10**12).key,
        EventSegmentKey(session, HEAD_ID, SEALED_NS + 10**9, 1).key,
        LogPackKey(session, HEAD_ID, SEALED_NS, 0).key,
        LogIndexKey(session, HEAD_ID, "0" * 32, 1).key,
        KubeFactsKey(session.namespace, session.cluster, UID, SEALED_NS).key,
        manifest_key(session, 1),
    ]


def claim(store: Path, key: str) -> None:
    """An object of gigabytes that takes no disk."""
    (store / key).parent.mkdir(parents=True, exist_ok=True)
    with (store / key).open("wb") as file:
        file.truncate(LARGE_BYTES)


async def test_no_object_is_read_whole_that_is_larger_than_its_kind(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    honest = await put_ended_session(store)
    sessions = [hostile(number) for number in range(len(keys_of(SESSION)))]
    for number, session in enumerate(sessions):
        await put_ended_session(store, session, tasks=1)
        names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
        record = SessionRecord(**names, started_at=STARTED_AT, recorded_at=STARTED_AT, cluster_uid=UID)
        await store.put(session_record_key(session), encode_record(record))
        claim(tmp_path / "store", keys_of(session)[number])
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        for path in ("/", "/jobs", "/clusters", "/api/keeper/v1/sessions"):
            assert (await server.get(path))[0] == 200, path
        for session in sessions:
            logs = f"/api/v0/logs?node_id={HEAD_ID}"
            answered = {page: (await server.get(session_url(session) + page))[0] for page in (*PAGES, logs)}
            assert {page: status for page, status in answered.items() if status == 500} in ({}, {logs: 500}), session
        await check_honest(server, honest)


async def check_honest(server: AttackedServer, honest: str) -> None:
    status, body = await server.get(f"{honest}/api/v0/tasks?limit=1")
    assert status == 200
    assert msgspec.json.decode(body)["data"]["result"]["total"] == TASKS
    assert server.peak_bytes < MEMORY_LIMIT_BYTES, f"{server.peak_bytes >> 20} MB"
