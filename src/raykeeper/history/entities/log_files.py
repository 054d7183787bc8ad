"""From ids to a file: which node's, which one, and which of its bytes. Decided and worded as Ray does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass

from raykeeper.history.entities.cluster import version
from raykeeper.history.entities.job_list import named_job
from raykeeper.history.entities.missing_gcs_events import inferred_actor
from raykeeper.history.entities.nodes import last_statistics
from raykeeper.history.errors import LogRefused, LogUnknown
from raykeeper.history.logs.names import absolute_path, path_under_logs
from raykeeper.history.logs.query import LogQuery, Suffix
from raykeeper.history.logs.store import NodeFiles
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.layout.logs import StoredLog
from raykeeper.rayevents.ids import ACTOR_ID_BYTES, NODE_ID_BYTES

_WORKER_FILE = re.compile(r"(?:.*/)?worker-([0-9a-f]+)-([0-9a-f]+)-(\d+)\.(out|err)")
_MOVED = "old"
"""Folder under `logs/` to which Ray's log monitor moves files of dead workers once 200 are open; offsets stay valid."""
_LOG_RANGES_SINCE = (2, 54)  # before that, events do not say where in a worker's file a task's output is

NODE_OF_IP = "SELECT node_id FROM nodes WHERE node_ip = $node_ip ORDER BY started_ns DESC NULLS LAST LIMIT 1"
NODE = "SELECT node_id FROM nodes WHERE node_id = $node_id"
ACTOR = "SELECT transitions FROM actors WHERE actor_id = $actor_id AND (has_definition OR transitions IS NOT NULL)"
TASK_ATTEMPTS = """
    SELECT attempt_number, actor_id, node_id, worker_id, stdout_file, stderr_file,
           stdout_start, stdout_end, stderr_start, stderr_end
    FROM tasks WHERE task_id = $task_id
"""


@dataclass(frozen=True)
class LogTarget:
    """A file of a node, or a range of it."""

    node_id: str
    filename: str
    start: int = 0
    end: int | None = None
    """None: to the end of the file."""


@dataclass(frozen=True)
class FoundLog:
    node_id: str
    stored: StoredLog
    start: int
    end: int
    is_range: bool
    """Ends where it was told to, and not where the file happens to end."""


async def node_of_ip(context: SessionContext, node_ip: str) -> str | None:
    """The node that had this address last."""
    rows = await context.rows(NODE_OF_IP, {"node_ip": node_ip})
    if rows:
        return str(rows[0]["node_id"])
    entries = (await last_statistics(context)).entries
    return next((node_id for node_id, entry in entries.items() if entry.get("ip") == node_ip), None)


async def is_node(context: SessionContext, node_id: str) -> bool:
    """Whether anything is known of this node."""
    if node_id in await context.logs.node_ids(context.session.id):
        return True
    return bool(await context.rows(NODE, {"node_id": node_id}))


async def find_log(context: SessionContext, query: LogQuery) -> FoundLog:
    """The file and range that a request means. Raises LogUnknown."""
    # The tables say which file it is, and packs are listed meanwhile: whichever it is, they will be asked for.
    wanted, _ = await asyncio.gather(_wanted(context, query), context.logs.node_ids(context.session.id))
    return await find_part(context, wanted)


async def find_part(context: SessionContext, wanted: LogTarget) -> FoundLog:
    """The part of a file that is known by its name. Raises LogUnknown."""
    _check_id(wanted.node_id, NODE_ID_BYTES)
    if not await is_node(context, wanted.node_id):
        raise LogUnknown(f"Agent for node id: {wanted.node_id} doesn't exist.")
    stored = _stored(await context.logs.files(context.session.id, wanted.node_id), wanted, context.session.id.session)
    size = stored.size
    end = size if wanted.end is None else min(wanted.end, size)
    return FoundLog(wanted.node_id, stored, min(wanted.start, end), end, wanted.end is not None)


def _stored(files: NodeFiles, wanted: LogTarget, session: str) -> StoredLog:
    path = path_under_logs(wanted.filename, session)
    missing = f"A file is not found at: {absolute_path(wanted.filename, session)}"
    if path is None:
        raise LogRefused(missing)
    stored = files.by_path.get(path) or files.by_path.get(f"{_MOVED}/{path}")
    if stored is None:
        raise LogUnknown(missing)
    return stored


async def _wanted(context: SessionContext, query: LogQuery) -> LogTarget:
    if query.actor_id:
        return await _of_actor(context, query)
    if query.task_id:
        return await _of_task(context, query)
    node_id = query.node_id or await node_of_ip(context, query.node_ip)
    if query.submission_id:
        return await _of_submission(context, query)
    if query.pid:
        if node_id is None:
            raise LogUnknown(f"Node id needs to be specified for resolving filenames of pid {query.pid}")
        filename = await _worker_file(context, node_id, query.suffix, pid=query.pid)
        return _wanted_file(query, node_id, filename)
    return _wanted_file(query, node_id, query.filename)


async def _of_actor(context: SessionContext, query: LogQuery) -> LogTarget:
    """The last incarnation that left a file: those before it ran elsewhere and have files of their own."""
    _check_id(query.actor_id, ACTOR_ID_BYTES)
    rows = await context.rows(ACTOR, {"actor_id": query.actor_id})
    inferred = None if rows else await inferred_actor(context, query.actor_id)
    if not rows and inferred is None:
        raise LogRefused(f"Actor ID ActorID({query.actor_id}) not found.")
    lives = [inferred] if inferred else reversed(rows[0]["transitions"] or [])
    workers = [(life["node_id"], life["worker_id"]) for life in lives if life["node_id"] and life["worker_id"]]
    if not workers:
        raise LogRefused(f"Worker ID for Actor ID ActorID({query.actor_id}) not found. Actor is not scheduled yet.")
    for node_id, worker_id in dict.fromkeys(workers):
        if filename := await _worker_file(context, node_id, query.suffix, worker_id=worker_id):
            return LogTarget(node_id, filename)
    return _wanted_file(query, workers[0][0], None)


async def _of_task(context: SessionContext, query: LogQuery) -> LogTarget:
    """The part of a worker's file that one attempt of a task wrote."""
    row = await _attempt(context, query)
    node_id, worker_id, actor_id = row["node_id"], row["worker_id"], row["actor_id"]
    attempt = f"{query.task_id}({query.attempt_number})"
    if node_id is None:
        raise LogRefused(f"Could not find log file for task attempt.{attempt} due to missing node info.")
    if row["stdout_file"] or row["stderr_file"]:
        return _range_of(node_id, row, query)
    if actor_id:
        raise LogRefused(ACTOR_TASK.format(actor_id=actor_id))
    if worker_id and not await _says_ranges(context):
        filename = await _worker_file(context, node_id, query.suffix, worker_id=worker_id)
        return _wanted_file(query, node_id, filename)
    raise LogRefused(
        f"Could not find log file for task attempt:{attempt}."
        f"Worker id = {worker_id}, node id = {node_id},log_info = None"
    )


async def _attempt(context: SessionContext, query: LogQuery) -> Row:
    rows = await context.rows(TASK_ATTEMPTS, {"task_id": query.task_id}, (query.task_id, query.task_id))
    if not rows:
        raise LogRefused(
            f"Could not find log file for task: {query.task_id} (attempt {query.attempt_number}) "
            f"with suffix: {query.suffix}"
        )
    row = next((row for row in rows if row["attempt_number"] == query.attempt_number), None)
    if row is None:
        raise LogRefused(f"Could not find log file for task attempt:{query.task_id}({query.attempt_number})")
    return row


ACTOR_TASK = (
    "For actor task, please query actor log for actor({actor_id}): e.g. ray logs actor --id {actor_id} . Or set "
    "RAY_ENABLE_RECORD_ACTOR_TASK_LOGGING=1 in actor's runtime env or when starting the cluster. Recording actor "
    "task's log could be expensive, so Ray turns it off by default."
)


def _range_of(node_id: str, row: Row, query: LogQuery) -> LogTarget:
    stream = f"std{query.suffix}"
    filename, start, end = (row[f"{stream}_{part}"] for part in ("file", "start", "end"))
    if not isinstance(filename, str) or not filename:
        raise LogRefused(f"Missing log filename info in {row} for task {query.task_id},attempt {query.attempt_number}")
    return LogTarget(node_id, filename, start if isinstance(start, int) else 0, end if isinstance(end, int) else None)


async def _says_ranges(context: SessionContext) -> bool:
    """Whether this Ray says where in a file a task's output is; of an older one, its worker's whole file is shown."""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", str((await version(context))["ray_version"]))
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= _LOG_RANGES_SINCE


async def _of_submission(context: SessionContext, query: LogQuery) -> LogTarget:
    job = await named_job(context, query.submission_id)
    if job is None or not job.is_submission:
        return _wanted_file(query, None, None)
    if not job.driver_node_id:
        raise LogUnknown(
            f"Job {query.submission_id} has no driver node id info. This is likely a bug. Please file an issue."
        )
    return LogTarget(job.driver_node_id, job.log_name)


async def _worker_file(
    context: SessionContext, node_id: str, suffix: Suffix, *, worker_id: str = "", pid: int = 0
) -> str | None:
    """The newest output file of a worker, by its id or its pid."""
    files = (await context.logs.files(context.session.id, node_id)).by_path
    for path in sorted(files, key=lambda path: files[path].last_read_ns, reverse=True):
        named = _WORKER_FILE.fullmatch(path)
        if named and named[4] == suffix and (named[1] == worker_id or (pid and int(named[3]) == pid)):
            return path
    return None


@dataclass(frozen=True)
class WorkerFile:
    """What a worker wrote, by the name of the file."""

    path: str
    worker_id: str
    pid: int
    suffix: str


def worker_files(paths: Iterable[str], job_id: str) -> list[WorkerFile]:
    """The files of those workers that worked for a job. Pure."""
    named = [(path, _WORKER_FILE.fullmatch(path)) for path in paths]
    return [WorkerFile(path, one[1], int(one[3]), one[4]) for path, one in named if one and one[2] == job_id]


_DRIVER_FILE = re.compile(r"(?:.*/)?job-driver-(.+)\.log")
_NO_JOB = "ffffffff"


def job_of_file(path: str) -> str:
    """The job whose driver or worker wrote a file, by any of its ids; empty for what belongs to none. Pure."""
    if driver := _DRIVER_FILE.fullmatch(path):
        return driver[1]
    worker = _WORKER_FILE.fullmatch(path)
    return worker[2] if worker and worker[2] != _NO_JOB else ""


def _check_id(text: str, size: int) -> None:
    try:
        length = len(bytes.fromhex(text))
    except ValueError as exc:
        raise LogRefused(str(exc)) from exc
    if length != size:
        raise LogRefused(f"ID string needs to have length {size}, got {length}")


def _wanted_file(query: LogQuery, node_id: str | None, filename: str | None) -> LogTarget:
    """The file that was found for a request. Raises LogUnknown where there is none."""
    if node_id and filename:
        return LogTarget(node_id, filename)
    given = {
        "node_id": node_id,
        "filename": None,
        "actor_id": query.actor_id or None,
        "task_id": query.task_id or None,
        "pid": query.pid,
        "suffix": query.suffix,
        "submission_id": query.submission_id or None,
        "attempt_number": query.attempt_number,
    }
    lines = "".join(f"\t{name}: {value}\n" for name, value in given.items())
    raise LogUnknown(f"Could not find a log file. Please make sure the given option exists in the cluster.\n{lines}")
