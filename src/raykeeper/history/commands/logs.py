"""`raykeeper logs`: log files of a session that is over, which `ray logs` cannot ask a history server for (its client
refuses addresses with a path).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from raykeeper.errors import Misconfigured
from raykeeper.history.commands.subjects import (
    RayJobSubject,
    Source,
    Subject,
    answer_of,
    ask_server,
    history_over,
    known_session,
    opened_whole,
    parse_subject,
)
from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.entities.log_files import FoundLog, find_log
from raykeeper.history.errors import LogUnknown, NotFound
from raykeeper.history.http.ray_api.logs import read_log
from raykeeper.history.logs.query import ALL_LINES, LogQuery
from raykeeper.history.query.context import SessionContext
from raykeeper.history.urls import session_path

Write = Callable[[bytes], object]
_PIECE = 1 << 20


@dataclass(frozen=True)
class LogsCommand:
    """What the command line said: which session or job, and which of its files."""

    subject: str
    source: Source
    wanted: LogQuery
    """Names nothing where the driver's log, or the list of files, is wanted."""

    @property
    def names_file(self) -> bool:
        return bool(self.wanted.actor_id or self.wanted.task_id or self.wanted.filename)


def run(command: LogsCommand, environment: Mapping[str, str], write: Write) -> None:
    """Write the log. Raises RaykeeperError."""
    asyncio.run(_run(command, environment, write))


async def _run(command: LogsCommand, environment: Mapping[str, str], write: Write) -> None:
    subject = parse_subject(command.subject)
    command.source.check()
    if isinstance(subject, RayJobSubject):
        raise Misconfigured("SUBJECT", command.subject, "it must be <namespace>/<cluster>/<session>[/<job>]")
    if command.source.store:
        pieces = _from_store(command, subject, environment)
    else:
        pieces = _from_server(command, subject, command.source.token(environment))
    async with aclosing(pieces):
        async for piece in pieces:
            write(piece)


async def _from_store(
    command: LogsCommand, subject: Subject, environment: Mapping[str, str]
) -> AsyncGenerator[bytes, None]:
    async with history_over(command.source.store, environment, command.source.cache_dir) as history:
        session = await known_session(history, subject)
        if session is None:
            raise Misconfigured("SUBJECT", command.subject, "the cluster has no session")
        context = await opened_whole(history, session)
        if not command.names_file and not subject.job:
            yield await _listed(context)
            return
        query, found = await _found(context, command, subject.job or "")
        async for piece in read_log(context, query, found):
            yield piece


async def _found(context: SessionContext, command: LogsCommand, job: str) -> tuple[LogQuery, FoundLog]:
    """The file that is wanted: of the job's driver where none is named. Raises NotFound."""
    query = command.wanted
    try:
        if not command.names_file:
            query = replace(query, submission_id=(await find_job(context, job)).name)
        return query, await find_log(context, query)
    except (JobUnknown, LogUnknown) as exc:
        raise NotFound(str(exc)) from exc


async def _listed(context: SessionContext) -> bytes:
    """Every file with its node and size."""
    lines = []
    for node_id in await context.logs.node_ids(context.session.id):
        files = await context.logs.files(context.session.id, node_id)
        lines += [f"{node_id} {stored.size:>12} {path}" for path, stored in sorted(files.by_path.items())]
    return "".join(f"{line}\n" for line in lines).encode()


async def _from_server(command: LogsCommand, subject: Subject, token: str) -> AsyncGenerator[bytes, None]:
    server, prefix = command.source.server, session_path(subject.session)
    if not command.names_file:
        path = f"{prefix}api/jobs/{subject.job}/logs" if subject.job else ""
        yield await _driver_log(server, path, token) if path else await _listed_by(server, prefix, token)
        return
    query = command.wanted
    asked = {
        "node_id": query.node_id,
        "actor_id": query.actor_id,
        "task_id": query.task_id,
        "attempt_number": str(query.attempt_number),
        "filename": query.filename,
        "suffix": query.suffix,
        "lines": str(query.lines),
    }
    given = urlencode({name: value for name, value in asked.items() if value})
    async with answer_of(server, f"{prefix}api/v0/logs/file?{given}", token) as response:
        async for piece in response.content.iter_chunked(_PIECE):
            yield piece


async def _driver_log(server: str, path: str, token: str) -> bytes:
    answer = json.loads(await ask_server(server, path, token))
    return str(answer.get("logs", "")).encode()


async def _listed_by(server: str, prefix: str, token: str) -> bytes:
    """As the server's list of each node has them, without sizes."""
    answer = json.loads(await ask_server(server, f"{prefix}api/v0/nodes?limit=10000", token))
    lines = []
    for node in answer["data"]["result"]["result"]:
        listed = json.loads(await ask_server(server, f"{prefix}api/v0/logs?node_id={node['node_id']}", token))
        names = sorted(name for group in listed["data"]["result"].values() for name in group)
        lines += [f"{node['node_id']} {name}" for name in names]
    return "".join(f"{line}\n" for line in lines).encode()


__all__ = ["ALL_LINES", "LogQuery", "LogsCommand", "run"]
