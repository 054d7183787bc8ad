"""Reports on sessions of events made by hand, through real tables and the real database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from raykeeper.clock import SystemClock
from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.report.make import make_report
from raykeeper.history.report.model import Report
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.records import PolledAnswer, SessionRecord
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.ingest_scene import (
    HEAD,
    SESSION,
    START_NS,
    Event,
    LocalTables,
    base64_id,
    definition,
    event,
    lifecycle,
    segment,
    timestamp,
)
from support.ingest_scene import task_id as numbered

SECOND = 1_000_000_000
WORKER, NODE = "cc" * 28, "dd" * 28
ACTOR = "ee" * 12 + "01000000"
JOB = "01000000"
NOW = datetime(2026, 11, 15, 11, tzinfo=UTC)
RECORD = SessionRecord(
    namespace=SESSION.namespace,
    cluster=SESSION.cluster,
    session=SESSION.session,
    started_at=NOW,
    recorded_at=NOW,
    cluster_uid="uid-of-the-cluster",
)


def no_logs() -> LogStore:
    """Of sessions without any log. A new one each time: its locks belong to the loop of one test."""
    return LogStore(open_store(parse_store_url("file:///nonexistent/no-logs", {})), SystemClock())


@dataclass(frozen=True)
class ToldFacts:
    """What Kubernetes said, whichever cluster is asked for."""

    facts: KubeFacts

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        return self.facts


class ReportTables(LocalTables):
    @property
    def files(self) -> Mapping[str, tuple[Path, ...]]:
        return self._tables


async def report_of(
    folder: Path,
    events: Iterable[Event],
    *,
    jobs: Sequence[Mapping[str, Any]] = (),
    job: str | None = None,
    facts: KubeFacts | None = None,
    record: SessionRecord | None = None,
    groups: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """The report on a session of these events, whose dashboard listed these jobs and placement groups, and whose pods
    fared so."""
    tables = ReportTables(folder)
    tables.add([segment(events)])
    tables.merge()
    tables.close()
    told = {"/api/jobs/": list(jobs), "/api/v0/placement_groups": {"data": {"result": {"result": list(groups)}}}}
    polled = {path: _polled(path, body) for path, body in told.items()}
    session = Session(SESSION, FixedTables(tables.files), NOW, record=record or RECORD, polled=polled)
    database = Database(folder)
    try:
        return await make_report(
            SessionContext(session, database, no_logs(), kubernetes=ToldFacts(facts or KubeFacts())), job
        )
    finally:
        await database.close()


def _polled(path: str, body: object) -> PolledAnswer:
    return PolledAnswer(path=path, polled_at=NOW, status=200, body=msgspec.Raw(msgspec.json.encode(body)))


def a_job(status: str = "SUCCEEDED", **more: Any) -> dict[str, Any]:
    """A submission as Ray's job API lists it."""
    return {
        "type": "SUBMISSION",
        "job_id": JOB,
        "submission_id": "nightly",
        "status": status,
        "entrypoint": "python main.py",
        "message": None,
        "error_type": None,
        "driver_exit_code": None,
        "start_time": START_NS // 1_000_000,
        "end_time": START_NS // 1_000_000 + 60_000,
    } | more


def failed(
    number: int,
    error_type: str,
    message: str,
    *,
    seconds: int = 10,
    name: str = "step",
    attempt: int = 0,
    worker: str = WORKER,
    node: str = NODE,
    **more: Any,
) -> list[Event]:
    """A task that failed so many seconds after the start; its owner says where it was sent, if it found a node."""
    task = numbered(number)
    error = {"errorType": error_type, "errorMessage": message}
    waited = [("PENDING_ARGS_AVAIL", number), ("PENDING_NODE_ASSIGNMENT", number + 1)]
    sent_at = [("SUBMITTED_TO_WORKER", SECOND)] if worker else []
    states = [*waited, *sent_at, ("FAILED", seconds * SECOND)]
    sent = {"nodeId": base64_id(node) if node else "", "workerId": base64_id(worker) if worker else ""}
    return [
        definition(task, attempt=attempt, name=name, **more),
        lifecycle(task, states, attempt=attempt, rayErrorInfo=error, **sent),
    ]


def running_task(number: int) -> list[Event]:
    """A task that never said that it ended."""
    states = [("SUBMITTED_TO_WORKER", SECOND), ("RUNNING", 2 * SECOND)]
    return [definition(numbered(number)), lifecycle(numbered(number), states, workerPid=7)]


def worker_died(exit_type: str, detail: str, seconds: int, worker: str = WORKER) -> Event:
    death = {"exitType": exit_type, "exitDetail": detail}
    ns = START_NS + seconds * SECOND
    transition = {"state": "DEAD", "timestamp": timestamp(ns), "endTimeMs": str(ns // 1_000_000), "deathInfo": death}
    body = {"workerId": base64_id(worker), "jobId": base64_id(JOB), "stateTransitions": [transition]}
    return event("WORKER_LIFECYCLE_EVENT", "workerLifecycleEvent", body)


def node_died(reason: str, message: str, seconds: int, node: str = NODE) -> list[Event]:
    death = {"reason": reason, "reasonMessage": message}
    transition = {"state": "DEAD", "timestamp": timestamp(START_NS + seconds * SECOND), "deathInfo": death}
    facts = {"nodeId": base64_id(node), "nodeIpAddress": "10.0.0.9"}
    return [
        event("NODE_DEFINITION_EVENT", "nodeDefinitionEvent", facts),
        event(
            "NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", {"nodeId": base64_id(node), "stateTransitions": [transition]}
        ),
    ]


def actor_died(cause: Mapping[str, Any], seconds: int, actor: str = ACTOR) -> list[Event]:
    transition = {"state": "DEAD", "timestamp": timestamp(START_NS + seconds * SECOND), "deathCause": cause}
    facts = {"actorId": base64_id(actor), "jobId": base64_id(JOB), "className": "Counter"}
    return [
        event("ACTOR_DEFINITION_EVENT", "actorDefinitionEvent", facts),
        event(
            "ACTOR_LIFECYCLE_EVENT",
            "actorLifecycleEvent",
            {"actorId": base64_id(actor), "stateTransitions": [transition]},
        ),
    ]


def method(
    task: str, name: str, error: Mapping[str, Any], seconds: int, *, worker: str = "", waited: bool = False
) -> list[Event]:
    """A call of an actor's method that failed; having `waited` for a node, it says so."""
    function = {"pythonFunctionDescriptor": {"moduleName": "main", "className": "Counter", "functionName": name}}
    facts = {
        "taskId": base64_id(task),
        "taskAttempt": 0,
        "jobId": base64_id(JOB),
        "actorId": base64_id(ACTOR),
        "actorTaskName": f"Counter.{name}",
        "actorFunc": function,
        "parentTaskId": base64_id("ff" * 20 + JOB),
    }
    context = [("PENDING_NODE_ASSIGNMENT", 2)] if waited else []
    states = [("PENDING_ARGS_AVAIL", 1), *context, ("FAILED", seconds * SECOND)]
    sent: dict[str, Any] = {"workerId": base64_id(worker), "nodeId": base64_id(HEAD)} if worker else {}
    return [
        event("ACTOR_TASK_DEFINITION_EVENT", "actorTaskDefinitionEvent", facts),
        lifecycle(task, states, rayErrorInfo=error, **sent),
    ]


def actor_task(number: int) -> str:
    """The id of a call of the actor."""
    return f"{number:016x}{ACTOR}"


def traceback_of(function: str, exception: str) -> str:
    """As Ray writes a user's exception."""
    return (
        f"User exception:\nray::{function}() (pid=7, ip=10.0.0.9)\n"
        f'  File "/app/main.py", line 3, in {function}\n    raise oops\n{exception}'
    )
