"""Overviews of sessions of events made by hand, through real tables and the real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.query.context import ClusterFacts, SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.records import PolledAnswer, SessionRecord
from support.ingest_scene import HEAD, SESSION, START_NS, Event, base64_id, event, lifecycle, segment, timestamp
from support.report_scene import ACTOR, JOB, NOW, ReportTables, actor_task, no_logs

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


class KnownFacts:
    """What Kubernetes said, whatever cluster is asked for."""

    def __init__(self, facts: KubeFacts) -> None:
        self._facts = facts

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        return self._facts


@asynccontextmanager
async def asked_about(
    folder: Path,
    events: Iterable[Event],
    *,
    jobs: Sequence[Mapping[str, Any]] = (),
    as_of: datetime = NOW,
    kube: KubeFacts | None = None,
) -> AsyncIterator[SessionContext]:
    """A session of these events, whose dashboard listed these jobs."""
    tables = ReportTables(folder)
    tables.add([segment(events)])
    tables.merge()
    tables.close()
    listed = PolledAnswer(
        path="/api/jobs/", polled_at=NOW, status=200, body=msgspec.Raw(msgspec.json.encode(list(jobs)))
    )
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    record = SessionRecord(
        **names, started_at=at(0), recorded_at=at(0), head_node_id=HEAD, ray_version="2.60.0", cluster_uid="uid-1"
    )
    session = Session(SESSION, FixedTables(tables.files), as_of, record=record, polled={listed.path: listed})
    facts: ClusterFacts | None = KnownFacts(kube) if kube else None
    database = Database(folder)
    try:
        yield SessionContext(session, database, no_logs(), kubernetes=facts)
    finally:
        await database.close()


def at(seconds: float) -> datetime:
    """So long after the start."""
    return msgspec.convert(timestamp(START_NS + int(seconds * SECOND)), datetime)


def actor_events(states: Iterable[tuple[str, int]], **more: Any) -> list[Event]:
    """One actor; states with their times in nanoseconds after the start."""
    facts = {"actorId": base64_id(ACTOR), "jobId": base64_id(JOB), "className": "Counter"} | more
    transitions = [
        {"state": state, "timestamp": timestamp(START_NS + ns), "nodeId": base64_id(HEAD), "pid": 7}
        for state, ns in states
    ]
    return [
        event("ACTOR_DEFINITION_EVENT", "actorDefinitionEvent", facts),
        event(
            "ACTOR_LIFECYCLE_EVENT",
            "actorLifecycleEvent",
            {"actorId": base64_id(ACTOR), "stateTransitions": transitions},
        ),
    ]


def method_events(states: Iterable[tuple[str, int]], number: int = 1) -> list[Event]:
    """One call of that actor, which says that it needs a CPU."""
    task = actor_task(number)
    function = {"pythonFunctionDescriptor": {"moduleName": "main", "className": "Counter", "functionName": "inc"}}
    facts = {
        "taskId": base64_id(task),
        "taskAttempt": 0,
        "jobId": base64_id(JOB),
        "actorId": base64_id(ACTOR),
        "actorTaskName": "Counter.inc",
        "actorFunc": function,
        "requiredResources": {"CPU": 1.0},
        "parentTaskId": base64_id("ff" * 20 + JOB),
    }
    return [event("ACTOR_TASK_DEFINITION_EVENT", "actorTaskDefinitionEvent", facts), lifecycle(task, states)]
