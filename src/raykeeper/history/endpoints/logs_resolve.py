"""From ids to a file: which node's, which one, and which of its bytes. Decided and worded as Ray does."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from raykeeper.history.answers import LogRefused, LogUnknown
from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.logs_jobs import find_job
from raykeeper.history.endpoints.nodestatistics import last_statistics
from raykeeper.history.endpoints.untold import untold_actor
from raykeeper.history.endpoints.version import version
from raykeeper.history.logs.logquery import LogQuery, Suffix
from raykeeper.history.logs.logstore import LogStore, NodeFiles
from raykeeper.history.logs.places import absolute_path, path_under_logs
from raykeeper.layout.logs import StoredLog

ACTOR_ID_BYTES, NODE_ID_BYTES = 16, 28
_WORKER_FILE = re.compile(r"(?:.*/)?worker-([0-9a-f]+)-([0-9a-f]+)-(\d+)\.(out|err)")
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
class Wanted:
    """A file of a node, or a range of it."""

    node_id: str
    filename: str
    start: int = 0
    end: int | None = None
    """None: to the end of the file."""


@dataclass(frozen=True)
class Found:
    node_id: str
    stored: StoredLog
    start: int
    end: int
    is_range: bool
    """Ends where it was told to, and not where the file happens to end."""


async def node_of_ip(asked: Asked, node_ip: str) -> str | None:
    """The node that had this address last."""
    rows = await asked.rows(NODE_OF_IP, {"node_ip": node_ip})
    if rows:
        return str(rows[0]["node_id"])
    entries = last_statistics(asked).entries
    return next((node_id for node_id, entry in entries.items() if entry.get("ip") == node_ip), None)


async def is_node(asked: Asked, logs: LogStore, node_id: str) -> bool:
    """Whether anything is known of this node."""
    if node_id in await logs.node_ids(asked.session.id):
        return True
    return bool(await asked.rows(NODE, {"node_id": node_id}))


async def find_log(asked: Asked, logs: LogStore, query: LogQuery) -> Found:
    """The file and range that a request means. Raises LogUnknown."""
    # The tables say which file it is, and packs are listed meanwhile: whichever it is, they will be asked for.
    wanted, _ = await asyncio.gather(_wanted(asked, logs, query), logs.node_ids(asked.session.id))
    _check_id(wanted.node_id, NODE_ID_BYTES)
    if not await is_node(asked, logs, wanted.node_id):
        raise LogUnknown(f"Agent for node id: {wanted.node_id} doesn't exist.")
    stored = _stored(await logs.files(asked.session.id, wanted.node_id), wanted, asked.session.id.session)
    size = stored.size
    end = size if wanted.end is None else min(wanted.end, size)
    return Found(wanted.node_id, stored, min(wanted.start, end), end, wanted.end is not None)


def _stored(files: NodeFiles, wanted: Wanted, session: str) -> StoredLog:
    path = path_under_logs(wanted.filename, session)
    missing = f"A file is not found at: {absolute_path(wanted.filename, session)}"
    if path is None:
        raise LogRefused(missing)
    if path not in files.by_path:
        raise LogUnknown(missing)
    return files.by_path[path]


async def _wanted(asked: Asked, logs: LogStore, query: LogQuery) -> Wanted:
    if query.actor_id:
        return await _of_actor(asked, logs, query)
    if query.task_id:
        return await _of_task(asked, logs, query)
    node_id = query.node_id or await node_of_ip(asked, query.node_ip)
    if query.submission_id:
        return await _of_submission(asked, query)
    if query.pid:
        if node_id is None:
            raise LogUnknown(f"Node id needs to be specified for resolving filenames of pid {query.pid}")
        filename = await _worker_file(asked, logs, node_id, query.suffix, pid=query.pid)
        return _wanted_file(query, node_id, filename)
    return _wanted_file(query, node_id, query.filename)


async def _of_actor(asked: Asked, logs: LogStore, query: LogQuery) -> Wanted:
    """The last incarnation that left a file: those before it ran elsewhere and have files of their own."""
    _check_id(query.actor_id, ACTOR_ID_BYTES)
    rows = await asked.rows(ACTOR, {"actor_id": query.actor_id})
    untold = None if rows else await untold_actor(asked, query.actor_id)
    if not rows and untold is None:
        raise LogRefused(f"Actor ID ActorID({query.actor_id}) not found.")
    lives = [untold] if untold else reversed(rows[0]["transitions"] or [])
    workers = [(life["node_id"], life["worker_id"]) for life in lives if life["node_id"] and life["worker_id"]]
    if not workers:
        raise LogRefused(f"Worker ID for Actor ID ActorID({query.actor_id}) not found. Actor is not scheduled yet.")
    for node_id, worker_id in dict.fromkeys(workers):
        if filename := await _worker_file(asked, logs, node_id, query.suffix, worker_id=worker_id):
            return Wanted(node_id, filename)
    return _wanted_file(query, workers[0][0], None)


async def _of_task(asked: Asked, logs: LogStore, query: LogQuery) -> Wanted:
    """The part of a worker's file that one attempt of a task wrote."""
    row = await _attempt(asked, query)
    node_id, worker_id, actor_id = row["node_id"], row["worker_id"], row["actor_id"]
    attempt = f"{query.task_id}({query.attempt_number})"
    if node_id is None:
        raise LogRefused(f"Could not find log file for task attempt.{attempt} due to missing node info.")
    if row["stdout_file"] or row["stderr_file"]:
        return _range_of(node_id, row, query)
    if actor_id:
        raise LogRefused(ACTOR_TASK.format(actor_id=actor_id))
    if worker_id and not _says_ranges(asked):
        filename = await _worker_file(asked, logs, node_id, query.suffix, worker_id=worker_id)
        return _wanted_file(query, node_id, filename)
    raise LogRefused(
        f"Could not find log file for task attempt:{attempt}."
        f"Worker id = {worker_id}, node id = {node_id},log_info = None"
    )


async def _attempt(asked: Asked, query: LogQuery) -> Row:
    rows = await asked.rows(TASK_ATTEMPTS, {"task_id": query.task_id}, (query.task_id, query.task_id))
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


def _range_of(node_id: str, row: Row, query: LogQuery) -> Wanted:
    stream = f"std{query.suffix}"
    filename, start, end = (row[f"{stream}_{part}"] for part in ("file", "start", "end"))
    if not isinstance(filename, str) or not filename:
        raise LogRefused(f"Missing log filename info in {row} for task {query.task_id},attempt {query.attempt_number}")
    return Wanted(node_id, filename, start if isinstance(start, int) else 0, end if isinstance(end, int) else None)


def _says_ranges(asked: Asked) -> bool:
    """Whether this Ray says where in a file a task's output is; of an older one, its worker's whole file is shown."""
    numbers = re.match(r"(\d+)\.(\d+)", version(asked)["ray_version"])
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= _LOG_RANGES_SINCE


async def _of_submission(asked: Asked, query: LogQuery) -> Wanted:
    job = await find_job(asked, query.submission_id)
    if job is None or job.submission_id != query.submission_id:
        return _wanted_file(query, None, None)
    if not job.driver_node_id:
        raise LogUnknown(
            f"Job {query.submission_id} has no driver node id info. This is likely a bug. Please file an issue."
        )
    return Wanted(job.driver_node_id, job.log_name)


async def _worker_file(
    asked: Asked, logs: LogStore, node_id: str, suffix: Suffix, *, worker_id: str = "", pid: int = 0
) -> str | None:
    """The newest output file of a worker, by its id or its pid."""
    files = (await logs.files(asked.session.id, node_id)).by_path
    for path in sorted(files, key=lambda path: files[path].last_read_ns, reverse=True):
        named = _WORKER_FILE.fullmatch(path)
        if named and named[4] == suffix and (named[1] == worker_id or (pid and int(named[3]) == pid)):
            return path
    return None


def _check_id(text: str, size: int) -> None:
    try:
        length = len(bytes.fromhex(text))
    except ValueError as exc:
        raise LogRefused(str(exc)) from exc
    if length != size:
        raise LogRefused(f"ID string needs to have length {size}, got {length}")


def _wanted_file(query: LogQuery, node_id: str | None, filename: str | None) -> Wanted:
    """The file that was found for a request. Raises LogUnknown where there is none."""
    if node_id and filename:
        return Wanted(node_id, filename)
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
