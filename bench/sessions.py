"""Generated sessions for the benchmarks of history: four events and about 3.5 KB a task, as Ray 2.60 sends them.

The same `SessionSpec` always gives the same bytes, so that figures of different runs compare.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import (
    CatalogEnd,
    CatalogStart,
    EndRecord,
    NodeRecord,
    Role,
    SessionRecord,
    encode_record,
)
from raykeeper.layout.segments import compress_lines
from raykeeper.storage.store import ObjectStore

STARTED = datetime(2026, 11, 15, 10, tzinfo=UTC)
SEGMENT_TEXT_BYTES = 8 << 20  # as a busy collector seals them
_NS = 1_000_000_000
_NIL_GROUP = "/" * 24
_FUNCTIONS = 20
_ENVIRONMENT = r"{\"env_vars\": {\"STAGE\": \"bench\"}, \"working_dir\": \"gcs://_ray_pkg_ed07c58de9f2ab91.zip\"}"


@dataclass(frozen=True)
class SessionSpec:
    """What to generate. One task in a hundred fails, one in five is a method of an actor."""

    tasks: int
    jobs: int = 5
    nodes: int = 4
    workers_per_node: int = 16
    cluster: str = "bench"
    is_ended: bool = True

    @property
    def id(self) -> SessionId:
        return SessionId("default", f"{self.cluster}-{self.tasks}", "session_2026-11-15_10-00-00_000000_1")

    @property
    def duration(self) -> timedelta:
        """A thousand tasks a second."""
        return timedelta(seconds=max(1.0, self.tasks / 1000))


@dataclass(frozen=True)
class _Worker:
    node: str
    worker: str
    worker_hex: str
    pid: int


def node_ids(spec: SessionSpec) -> list[str]:
    """Hex ids of the nodes; the first is the head."""
    return [random.Random(f"node-{number}").randbytes(28).hex() for number in range(spec.nodes)]


def event_lines(spec: SessionSpec) -> Iterator[tuple[int, int, list[str]]]:
    """For each task: the index of the node that ran it, the time, and its four events."""
    dice = random.Random(spec.tasks)
    workers = _workers(spec)
    start_ns = int(STARTED.timestamp()) * _NS
    step_ns = int(spec.duration.total_seconds() * _NS / max(1, spec.tasks))
    for number in range(spec.tasks):
        worker_number = dice.randrange(len(workers))
        now = start_ns + number * step_ns
        yield (
            worker_number % spec.nodes,
            now,
            _task_events(spec, dice, number, now, workers[worker_number]),
        )


def segments(spec: SessionSpec) -> Iterator[tuple[EventSegmentKey, bytes]]:
    """Every event segment of the session, as it lies in the bucket."""
    nodes = node_ids(spec)
    pending: list[list[str]] = [[] for _ in nodes]
    sizes = [0] * len(nodes)
    sequence = 0
    for line in _cluster_events(spec):
        pending[0].append(line)
    last_ns = int(STARTED.timestamp()) * _NS
    for index, last_ns, (definition, owned, run, profiled) in event_lines(spec):
        # A driver on the head owns them all; the node that ran one says so itself.
        for node, lines in ((0, [definition, owned]), (index, [run, profiled])):
            pending[node].extend(lines)
            sizes[node] += sum(map(len, lines))
            if sizes[node] >= SEGMENT_TEXT_BYTES:
                sequence += 1
                yield _sealed(spec, nodes[node], last_ns, sequence, pending[node])
                pending[node], sizes[node] = [], 0
    for node, rest in enumerate(pending):
        if rest:
            sequence += 1
            yield _sealed(spec, nodes[node], last_ns + _NS, sequence, rest)


async def write_session(store: ObjectStore, spec: SessionSpec) -> int:
    """Put all of the session into the store; bytes of its segments."""
    total = 0
    for key, data in segments(spec):
        await store.put(key.key, data)
        total += len(data)
    await write_records(store, spec)
    return total


async def write_records(store: ObjectStore, spec: SessionSpec) -> None:
    """The small objects beside the segments: facts, heartbeats, ends and the catalog."""
    session, ended_at = spec.id, STARTED + spec.duration + timedelta(seconds=30)
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    nodes = node_ids(spec)
    record = SessionRecord(
        **names, started_at=STARTED, recorded_at=STARTED, head_node_id=nodes[0], ray_version="2.60.0"
    )
    await store.put(session_record_key(session), encode_record(record))
    start = CatalogStart(**names, started_at=STARTED, ray_version="2.60.0")
    await store.put(CatalogKey(STARTED.date(), session, "start").key, encode_record(start))
    for number, node in enumerate(nodes):
        role: Role = "worker" if number else "head"
        beat = NodeRecord(node_id=node, role=role, started_at=STARTED, beat_at=ended_at, interval_seconds=30)
        await store.put(node_record_key(session, node), encode_record(beat))
        if spec.is_ended:
            end = EndRecord(node_id=node, role=role, ended_at=ended_at, reason="SIGTERM", is_complete=True)
            await store.put(end_record_key(session, node), encode_record(end))
    if spec.is_ended:
        end_entry = CatalogEnd(ended_at=ended_at, reason="SIGTERM")
        await store.put(CatalogKey(STARTED.date(), session, "end").key, encode_record(end_entry))


def _sealed(
    spec: SessionSpec, node: str, sealed_ns: int, sequence: int, lines: list[str]
) -> tuple[EventSegmentKey, bytes]:
    return EventSegmentKey(spec.id, node, sealed_ns, sequence), compress_lines(line.encode() for line in lines)


def _workers(spec: SessionSpec) -> list[_Worker]:
    workers = []
    nodes = node_ids(spec)
    for number in range(spec.nodes * spec.workers_per_node):
        worker = random.Random(f"worker-{number}").randbytes(28)
        node = bytes.fromhex(nodes[number % spec.nodes])
        workers.append(_Worker(_base64(node), _base64(worker), worker.hex(), 1000 + number))
    return workers


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _time(ns: int) -> str:
    moment = datetime.fromtimestamp(ns // _NS, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{ns % _NS:09d}Z"


def _envelope(dice: random.Random, kind: str, ns: int, spec: SessionSpec, node: str, payload: str) -> str:
    return (
        f'{{"eventId":"{_base64(dice.randbytes(28))}","sourceType":"CORE_WORKER","eventType":"{kind}",'
        f'"timestamp":"{_time(ns)}","severity":"INFO","sessionName":"{spec.id.session}",{payload},'
        f'"nodeId":"{node}","message":""}}'
    )


def _task_events(spec: SessionSpec, dice: random.Random, number: int, now: int, worker: _Worker) -> list[str]:
    job = (1 + number % spec.jobs).to_bytes(4, "little")
    is_method = number % 5 == 4
    actor = _actor_id(number % 50) + job
    task = _base64(dice.randbytes(8) + (actor if is_method else b"\xff" * 12 + job))
    ids = f'"taskId":"{task}","jobId":"{_base64(job)}"'
    submitted, running, ended = now + 2_000_000, now + 3_000_000, now + 3_000_000 + dice.randrange(10**9)
    definition = _definition(ids, number, job, _base64(actor) if is_method else "")
    kind = "ACTOR_TASK_DEFINITION_EVENT" if is_method else "TASK_DEFINITION_EVENT"
    return [
        _envelope(dice, kind, now, spec, worker.node, definition),
        _envelope(
            dice, "TASK_LIFECYCLE_EVENT", ended, spec, worker.node, _owned(ids, number, worker, now, submitted, ended)
        ),
        _envelope(dice, "TASK_LIFECYCLE_EVENT", running, spec, worker.node, _run(spec, ids, job, worker, running)),
        _envelope(dice, "TASK_PROFILE_EVENT", running, spec, worker.node, _profiled(ids, worker, running, ended)),
    ]


@cache
def _actor_id(number: int) -> bytes:
    return random.Random(f"actor-{number}").randbytes(12)


def _definition(ids: str, number: int, job: bytes, actor: str) -> str:
    name = f"step_{number % _FUNCTIONS}"
    class_name = "Counter" if actor else ""
    function = (
        f'{{"pythonFunctionDescriptor":{{"moduleName":"job_main","functionName":"{name}",'
        f'"functionHash":"124640edebcb46ea99fc08be9755cdf7","className":"{class_name}"}}}}'
    )
    common = (
        f'{ids},"requiredResources":{{"CPU":1.0}},"parentTaskId":"{_base64(bytes([255]) * 20 + job)}",'
        f'"placementGroupId":"{_NIL_GROUP}","serializedRuntimeEnv":"{_ENVIRONMENT}","taskAttempt":0,'
        '"language":"PYTHON","refIds":{},"labelSelector":{},"isDetachedActor":false'
    )
    if actor:
        return (
            f'"actorTaskDefinitionEvent":{{"actorFunc":{function},"actorTaskName":"Counter.{name}",'
            f'"actorId":"{actor}",{common}}}'
        )
    return f'"taskDefinitionEvent":{{"taskFunc":{function},"taskName":"{name}","taskType":"NORMAL_TASK",{common}}}'


def _owned(ids: str, number: int, worker: _Worker, now: int, submitted: int, ended: int) -> str:
    has_failed = number % 100 == 99
    states = (
        ("PENDING_ARGS_AVAIL", now),
        ("PENDING_NODE_ASSIGNMENT", now + 1000),
        ("SUBMITTED_TO_WORKER", submitted),
        ("FAILED" if has_failed else "FINISHED", ended),
    )
    transitions = ",".join(f'{{"state":"{state}","timestamp":"{_time(ns)}"}}' for state, ns in states)
    message = f"User exception:\\nValueError: bad value {number % 7}"
    error = f',"rayErrorInfo":{{"errorType":"TASK_EXECUTION_EXCEPTION","errorMessage":"{message}"}}'
    return (
        f'"taskLifecycleEvent":{{{ids},"stateTransitions":[{transitions}],"taskAttempt":0,'
        f'"nodeId":"{worker.node}","workerId":"{worker.worker}","workerPid":0{error if has_failed else ""}}}'
    )


def _run(spec: SessionSpec, ids: str, job: bytes, worker: _Worker, running: int) -> str:
    file = f"/tmp/ray/{spec.id.session}/logs/worker-{worker.worker_hex}-{job.hex()}-{worker.pid}"
    at = running // 1_000_000 % 1_000_000
    return (
        f'"taskLifecycleEvent":{{{ids},"stateTransitions":[{{"state":"RUNNING","timestamp":"{_time(running)}"}}],'
        f'"workerPid":{worker.pid},"taskLogInfo":{{"stdoutFile":"{file}.out","stderrFile":"{file}.err",'
        f'"stdoutStart":"{at}","stdoutEnd":"{at + 20}","stderrStart":"{at}","stderrEnd":"{at}"}},'
        '"taskAttempt":0,"nodeId":"","workerId":""}'
    )


def _profiled(ids: str, worker: _Worker, running: int, ended: int) -> str:
    marks = (running, running + 20_000, ended - 60_000, ended - 10_000)
    names = ("task:deserialize_arguments", "task:execute", "task:store_outputs")
    spans = ",".join(
        f'{{"startTime":"{start}","endTime":"{end}","extraData":"{{}}","eventName":"{name}"}}'
        for name, start, end in zip(names, marks, marks[1:], strict=False)
    )
    return (
        f'"taskProfileEvents":{{{ids},"profileEvents":{{"componentType":"worker","componentId":"{worker.worker}",'
        f'"nodeIpAddress":"10.77.0.1","events":[{spans}]}},"attemptNumber":0}}'
    )


def _cluster_events(spec: SessionSpec) -> Iterator[str]:
    """What the GCS says of nodes, workers and jobs, before the first task."""
    dice = random.Random("cluster")
    start = int(STARTED.timestamp()) * _NS
    workers = _workers(spec)
    head = workers[0].node

    def event(kind: str, name: str, body: str) -> str:
        return _envelope(dice, kind, start, spec, head, f'"{name}":{{{body}}}')

    def transition(state: str, more: str = "") -> str:
        return f'"stateTransitions":[{{"state":"{state}","timestamp":"{_time(start)}"{more}}}]'

    for number, node in enumerate(dict.fromkeys(worker.node for worker in workers)):
        address = f'"nodeId":"{node}","nodeIpAddress":"10.77.0.{number + 1}","nodeName":"10.77.0.{number + 1}"'
        yield event("NODE_DEFINITION_EVENT", "nodeDefinitionEvent", f'{address},"labels":{{}}')
        alive = transition("ALIVE", ',"resources":{"CPU":16.0}')
        yield event("NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", f'"nodeId":"{node}",{alive}')
    for worker in workers:
        ids = f'"workerId":"{worker.worker}","nodeId":"{worker.node}"'
        facts = f'{ids},"workerType":"WORKER","pid":{worker.pid}'
        yield event("WORKER_DEFINITION_EVENT", "workerDefinitionEvent", facts)
    for number in range(1, spec.jobs + 1):
        job = _base64(number.to_bytes(4, "little"))
        facts = f'"jobId":"{job}","driverPid":"{500 + number}","driverNodeId":"{head}","entrypoint":"python main.py"'
        yield event("DRIVER_JOB_DEFINITION_EVENT", "driverJobDefinitionEvent", facts)
        yield event("DRIVER_JOB_LIFECYCLE_EVENT", "driverJobLifecycleEvent", f'"jobId":"{job}",{transition("CREATED")}')
