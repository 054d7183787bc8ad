"""A store with the history of three namespaces, in which every name and every line says whose it is."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from raykeeper.history.commands.subjects import opened_whole
from raykeeper.history.live_objects.model import (
    LiveDetail,
    LiveKind,
    LiveObject,
    LiveObjectList,
    LiveObjects,
    LiveProblem,
)
from raykeeper.history.query.history import History
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    KubeFactsKey,
    PolledKey,
    RayJobId,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.kube_facts import ClusterFact, encode_facts
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import (
    CatalogEnd,
    CatalogStart,
    EndRecord,
    NodeRecord,
    PolledAnswer,
    SessionRecord,
    encode_record,
)
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.history_scene import PackBuilder
from support.ingest_scene import HEAD, START_NS, base64_id, finished_task, lifecycle, segment, task_id
from support.report_scene import JOB, WORKER, a_job, failed, node_died

TEAMS: Final = ("teamred", "teamblue", "teamgreen")
GHOST: Final = "teamghost"
"""A namespace that nobody has."""
STARTED: Final = datetime.fromtimestamp(START_NS / 1e9, UTC)
ENDED: Final = STARTED + timedelta(minutes=5)
LOG: Final = "raylet.out"
LOG_GENERATION: Final = f"g-{LOG}"


def session_of(team: str) -> SessionId:
    return SessionId(team, f"{team}-cluster", f"session_2026-11-15_10-00-00_{len(team):06d}_{team}")


def job_of(team: str) -> str:
    return f"{team}-nightly"


async def put_team(store: ObjectStore, team: str) -> None:
    """A session with a node, a failed job, logs, an unstarted cluster and an unstarted RayJob."""
    session = session_of(team)
    names = {"namespace": team, "cluster": session.cluster, "session": session.session}
    events = [
        *node_died("EXPECTED_TERMINATION", f"{team}-needle drained", 290, HEAD),
        *finished_task(1),
        lifecycle(task_id(1), [], nodeId=base64_id(HEAD), workerId=base64_id(WORKER), workerPid=7),
        *failed(2, "TASK_EXECUTION_EXCEPTION", "ZeroDivisionError: division by zero"),
        *failed(3, "TASK_EXECUTION_EXCEPTION", f"ValueError: {team}-needle is no number", name=f"{team}_step"),
    ]
    await store.put(EventSegmentKey(session, HEAD, START_NS, 0).key, segment(events))
    log = PackBuilder(store, session, HEAD)
    log.add(LOG, f"a {team}-needle in a log\n".encode())
    log.add(f"job-driver-{job_of(team)}.log", f"{team}-needle printed\n".encode())
    log.add(f"worker-{WORKER}-{JOB}-7.out", f"{team}-needle of a task\n".encode())
    await log.put()
    await _put_polled(store, session, "/api/jobs/", [_job(team)])
    record = SessionRecord(**names, started_at=STARTED, recorded_at=STARTED, head_node_id=HEAD)
    await store.put(session_record_key(session), encode_record(record))
    beat = NodeRecord(node_id=HEAD, role="head", started_at=STARTED, beat_at=ENDED, interval_seconds=30)
    await store.put(node_record_key(session, HEAD), encode_record(beat))
    end = EndRecord(node_id=HEAD, role="head", ended_at=ENDED, reason="SIGTERM", is_complete=True)
    await store.put(end_record_key(session, HEAD), encode_record(end))
    owner = {"owner_kind": "RayJob", "owner_name": f"{team}-rayjob"}
    start = CatalogStart(**names, started_at=STARTED, head_node_id=HEAD, **owner)
    await store.put(CatalogKey(STARTED.date(), session, "start").key, encode_record(start))
    ended = CatalogEnd(ended_at=ENDED, reason="head ended", head_node_id=HEAD)
    await store.put(CatalogKey(STARTED.date(), session, "end").key, encode_record(ended))
    await _put_unstarted(store, team)


async def _put_polled(store: ObjectStore, session: SessionId, path: str, body: object) -> None:
    answer = PolledAnswer(path=path, polled_at=STARTED, status=200, body=msgspec.Raw(msgspec.json.encode(body)))
    await store.put(PolledKey(session, path, START_NS // 1_000_000).key, encode_polled(answer))


def _job(team: str) -> dict[str, Any]:
    return a_job(
        "FAILED", submission_id=job_of(team), entrypoint=f"python {team}.py", message=f"{team}-needle: exit code 1"
    )


async def _put_unstarted(store: ObjectStore, team: str) -> None:
    key = KubeFactsKey(team, f"{team}-unborn", f"{team}-uid", START_NS).key
    await store.put(key, encode_facts([ClusterFact(at=STARTED, uid=f"{team}-uid", name=f"{team}-unborn")]))
    state = RayJobState(at=STARTED, deployment_status="ValidationFailed", message=f"{team}-needle is missing")
    id_ = RayJobId(team, f"{team}-refused", f"{team}-rayjob-uid")
    record = RayJobRecord(namespace=team, name=id_.rayjob, uid=id_.uid, states=(state,), created_at=STARTED)
    await store.put(id_.key, encode_record(record))


async def read_all(history: History, store: ObjectStore) -> None:
    """Have every session read to its end, so that lists know how it went."""
    for team in TEAMS:
        await opened_whole(history, session_of(team))
        key = CatalogKey(STARTED.date(), session_of(team), "summary").key
        await eventually(partial(store.find, key), seconds=60)


def copy_without_others(store: Path, copied: Path, teams: set[str]) -> None:
    """The same store as if the other teams had never been there; objects keep their times."""
    shutil.copytree(store, copied)
    for path in sorted(copied.rglob("*"), key=lambda one: len(one.parts), reverse=True):
        if any(team in path.name for team in TEAMS if team not in teams):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


_ASKED_AT: Final = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LiveTeams(LiveObjects):
    """A Kubernetes in which each team has its cluster."""

    teams: frozenset[str]

    async def all(self) -> LiveObjectList:
        return LiveObjectList(objects=tuple(map(_live, sorted(self.teams))), as_of=_ASKED_AT)

    async def find(self, kind: LiveKind, namespace: str, name: str) -> LiveDetail | LiveProblem | None:
        is_there = kind == "RayCluster" and namespace in self.teams and name == session_of(namespace).cluster
        return LiveDetail(object=_live(namespace), as_of=_ASKED_AT) if is_there else None


def _live(team: str) -> LiveObject:
    return LiveObject(kind="RayCluster", namespace=team, name=session_of(team).cluster, uid=team, state="ready")
