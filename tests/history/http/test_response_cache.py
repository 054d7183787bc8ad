"""One cache of a server: bounded, made once at a time, and given up as soon as anything behind it changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.ingest.session import Session
from raykeeper.history.query.cache import ResponseCache
from raykeeper.history.query.context import SessionContext
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.history.store.session_state import SessionState, State
from raykeeper.layout.kube_facts import PodFact
from raykeeper.layout.records import EndRecord, NodeRecord, SessionRecord
from support.history_scene import SESSION, STARTED_AT, LazyDatabase, opened_plainly
from support.report_scene import no_logs

NAMES = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
RECORD = SessionRecord(**NAMES, started_at=STARTED_AT, recorded_at=STARTED_AT, cluster_uid="u")
POD = PodFact(at=STARTED_AT, uid="p", name="head", phase="Failed")
BEAT = NodeRecord(node_id="a", role="head", started_at=STARTED_AT, beat_at=STARTED_AT, interval_seconds=10)
END = EndRecord(node_id="a", role="head", ended_at=STARTED_AT, reason="terminated", is_complete=True)


@dataclass
class Cluster:
    """What Kubernetes says, which may be more later."""

    facts: KubeFacts = field(default_factory=KubeFacts)

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        return self.facts


@dataclass
class Counted:
    made: int = 0

    async def make(self) -> int:
        await asyncio.sleep(0)
        self.made += 1
        return self.made


async def kept(cache: ResponseCache, key: str, size: int) -> int:
    counted = Counted(made=size - 1)
    return await cache.get(key, counted.make, lambda made: made)


async def test_the_longest_unused_values_are_forgotten_first() -> None:
    cache = ResponseCache(limit_bytes=10)
    await kept(cache, "a", 5)
    await kept(cache, "b", 5)
    await kept(cache, "a", 1)
    await kept(cache, "c", 1)
    assert [await kept(cache, key, 1) for key in ("a", "c", "b")] == [5, 1, 1]


async def test_a_value_larger_than_the_limit_is_not_kept() -> None:
    cache = ResponseCache(limit_bytes=10)
    assert [await kept(cache, "a", 11), await kept(cache, "a", 2)] == [11, 2]


async def test_a_value_that_many_want_at_once_is_made_once() -> None:
    cache, counted = ResponseCache(), Counted()
    assert await asyncio.gather(*(cache.get("a", counted.make) for _ in range(5))) == [1] * 5


async def test_a_failure_is_told_to_all_and_not_kept() -> None:
    cache = ResponseCache()

    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    found = await asyncio.gather(*(cache.get("a", fail) for _ in range(2)), return_exceptions=True)
    assert [str(failure) for failure in found] == ["no", "no"]
    assert await cache.get("a", Counted().make) == 1


async def test_what_is_being_made_when_the_server_ends_is_stopped() -> None:
    cache, began = ResponseCache(), asyncio.Event()

    async def make() -> int:
        began.set()
        await asyncio.sleep(3600)
        return 1

    waiting = asyncio.create_task(cache.get("report", make))
    await began.wait()
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": (BEAT,)},
        {"ends": (END,)},
        {"state": SessionState(State.CRASHED, ended_at=STARTED_AT)},
        {"as_of": STARTED_AT + timedelta(seconds=1)},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_what_was_made_of_a_session_is_made_again_once_the_session_changed(
    changed: dict[str, object], tmp_path: Path
) -> None:
    session = replace(opened_plainly(SESSION), record=RECORD)
    context, counted = about(session, tmp_path), Counted()
    assert [await context.remembered("report", counted.make) for _ in range(2)] == [1, 1]
    later = replace(context, session=replace(session, **changed))  # type: ignore[arg-type]  # any field
    assert await later.remembered("report", counted.make) == 2


async def test_a_report_seen_before_kubernetes_facts_arrived_is_made_again(tmp_path: Path) -> None:
    session = replace(opened_plainly(SESSION), record=RECORD)
    cluster, counted = Cluster(), Counted()
    context = replace(about(session, tmp_path), kubernetes=cluster)
    assert [await context.remembered("report", counted.make) for _ in range(2)] == [1, 1]
    cluster.facts = KubeFacts(pods=(POD,))
    assert await context.remembered("report", counted.make) == 2


def about(session: Session, folder: Path) -> SessionContext:
    return SessionContext(session, LazyDatabase(folder), no_logs())
