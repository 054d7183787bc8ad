"""Ray events made by hand, and the tables that come of them; and stores that hold a session of such events."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from raykeeper.history.ingest.messages import Batch, MergeRequest, Projected, Slice
from raykeeper.history.ingest.worker import IngestWorker, Limits
from raykeeper.layout.keys import EventSegmentKey, SessionId, end_record_key, node_record_key, session_record_key
from raykeeper.layout.records import EndRecord, NodeRecord, SessionRecord, encode_record
from raykeeper.layout.segments import compress_lines
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

SESSION = SessionId("default", "small", "session_2026-11-15_10-00-00_000000_1")
HEAD = "aa" * 28
WORKER_NODE = "bb" * 28
START_NS = 1_794_736_800_000_000_000  # 2026-11-15T10:00:00Z
SMALL = Limits(memory_bytes=200 << 20, threads=1)

Event = dict[str, Any]
Row = dict[str, Any]


def base64_id(hex_id: str) -> str:
    return base64.b64encode(bytes.fromhex(hex_id)).decode()


def timestamp(ns: int) -> str:
    """As protobuf prints it: no more digits than are needed, by threes."""
    whole, rest = divmod(ns, 1_000_000_000)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z" if digits else f"{text}Z"


def event(kind: str, payload: str, body: Event, ns: int = START_NS) -> Event:
    return {"eventId": base64_id("01" * 28), "eventType": kind, "timestamp": timestamp(ns), payload: body}


def task_id(number: int, job: int = 1) -> str:
    """Spread over all ranges, as Ray's are."""
    return f"{number * 2_654_435_761 % 2**32:08x}{number:08x}{'f' * 24}{job.to_bytes(4, 'little').hex()}"


def definition(task: str, *, attempt: int = 0, name: str = "step", **more: Any) -> Event:
    function = {"pythonFunctionDescriptor": {"moduleName": "main", "className": "", "functionName": name}}
    body = {
        "taskId": base64_id(task),
        "taskAttempt": attempt,
        "jobId": base64_id(task[-8:]),
        "taskType": "NORMAL_TASK",
        "taskName": name,
        "taskFunc": function,
        "parentTaskId": base64_id("ff" * 20 + task[-8:]),
        "placementGroupId": base64_id("ff" * 18),
        "requiredResources": {"CPU": 1.0},
        "language": "PYTHON",
        "serializedRuntimeEnv": "{}",
        "labelSelector": {},
    } | more
    return event("TASK_DEFINITION_EVENT", "taskDefinitionEvent", body)


def lifecycle(task: str, states: Iterable[tuple[str, int]], *, attempt: int = 0, **more: Any) -> Event:
    """States with their times in nanoseconds after the start."""
    transitions = [{"state": state, "timestamp": timestamp(START_NS + ns)} for state, ns in states]
    body = {
        "taskId": base64_id(task),
        "taskAttempt": attempt,
        "jobId": base64_id(task[-8:]),
        "nodeId": "",
        "workerId": "",
        "workerPid": 0,
        "stateTransitions": transitions,
    } | more
    return event("TASK_LIFECYCLE_EVENT", "taskLifecycleEvent", body)


def worker_lifecycle(worker: str, state: str, ns: int, **more: Any) -> Event:
    transition = {"state": state, "timestamp": timestamp(START_NS + ns)} | more
    body = {"workerId": base64_id(worker), "jobId": base64_id("01000000"), "stateTransitions": [transition]}
    return event("WORKER_LIFECYCLE_EVENT", "workerLifecycleEvent", body)


def job_lifecycle(job: str, state: str, ns: int) -> Event:
    transitions = [{"state": state, "timestamp": timestamp(START_NS + ns)}]
    body = {"jobId": base64_id(job), "stateTransitions": transitions}
    return event("DRIVER_JOB_LIFECYCLE_EVENT", "driverJobLifecycleEvent", body)


def finished_task(number: int, job: int = 1) -> list[Event]:
    task = task_id(number, job)
    states = [("PENDING_ARGS_AVAIL", number), ("SUBMITTED_TO_WORKER", number + 5), ("FINISHED", number + 20)]
    return [definition(task), lifecycle(task, states), lifecycle(task, [("RUNNING", number + 10)], workerPid=7)]


def segment(events: Iterable[Event]) -> bytes:
    return compress_lines(map(msgspec.json.encode, events))


class LocalTables:
    """Tables made on a workbench of this test's own."""

    def __init__(self, folder: Path, bits: int = 1) -> None:
        self._folder = folder
        self._bits = bits
        self._bench = IngestWorker(folder / "work", bits, SMALL)
        self._batches: list[str] = []
        self._tables: dict[str, tuple[Path, ...]] = {}

    def add(self, segments: Sequence[bytes], name: str = "") -> Projected:
        """Project one batch of segments, named `segment-0` and so on."""
        name = name or f"batch-{len(self._batches)}"
        file = self._folder / f"{name}.zst"
        file.write_bytes(b"".join(segments))
        offsets = [sum(map(len, segments[:number])) for number in range(len(segments))]
        slices = (
            Slice(f"segment-{number}", offset, len(data))
            for number, (offset, data) in enumerate(zip(offsets, segments, strict=True))
        )
        self._batches.append(name)
        return self._bench.project(Batch(name, file, tuple(slices)))

    def merge(self, cluster_end_ns: int | None = None, into: str = "tables") -> None:
        """Make tables of the batches since the last merge and of the tables it made."""
        order = MergeRequest(
            self._folder / into, tuple(self._batches), self._bits, self._tables, cluster_end_ns=cluster_end_ns
        )
        self._tables = self._bench.merge(order).tables
        self._batches = []

    def rows(self, table: str) -> list[Row]:
        return read_rows(self._tables[table])

    def close(self) -> None:
        self._bench.close()


def read_rows(files: Sequence[Path]) -> list[Row]:
    """The rows of Parquet files, in their order."""
    if not files:
        return []
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet($files)", {"files": [str(file) for file in files]})
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def tables_of(folder: Path, events: Iterable[Event], cluster_end_ns: int | None = None) -> LocalTables:
    """Tables of these events in one segment."""
    made = LocalTables(folder)
    made.add([segment(events)])
    made.merge(cluster_end_ns)
    made.close()
    return made


def local_store(folder: Path) -> ObjectStore:
    folder.mkdir(parents=True, exist_ok=True)
    return open_store(parse_store_url(f"file://{folder}", {}))


async def put_segment(store: ObjectStore, sequence: int, events: Iterable[Event], node: str = HEAD) -> str:
    """Seal one segment a second after the one before; its key."""
    key = EventSegmentKey(SESSION, node, START_NS + sequence * 1_000_000_000, sequence).key
    await store.put(key, segment(events))
    return key


async def put_records(store: ObjectStore, beat_at: datetime, *, is_ended: bool) -> None:
    """A session with one node, running or ended."""
    started = datetime.fromtimestamp(START_NS / 1e9, UTC)
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    record = SessionRecord(**names, started_at=started, recorded_at=started, head_node_id=HEAD)
    await store.put(session_record_key(SESSION), encode_record(record))
    beat = NodeRecord(node_id=HEAD, role="head", started_at=started, beat_at=beat_at, interval_seconds=30)
    await store.put(node_record_key(SESSION, HEAD), encode_record(beat))
    if is_ended:
        end = EndRecord(node_id=HEAD, role="head", ended_at=beat_at, reason="SIGTERM", is_complete=True)
        await store.put(end_record_key(SESSION, HEAD), encode_record(end))
