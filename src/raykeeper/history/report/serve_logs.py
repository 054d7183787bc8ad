"""What Ray Serve's own logs tell: requests and how many failed, what replicas raised over them, and replicas that could
not start or failed their health check. Ray records no events of Serve's calls.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.excerpts import traceback_excerpt
from raykeeper.history.report.fingerprint import digest, title_of
from raykeeper.history.report.log_excerpts import LibraryLog, library_logs
from raykeeper.history.report.model import Address, CodeLocation, Excerpt, ShownLine, Who, WhoKind
from raykeeper.history.report.naming import called, deployment
from raykeeper.history.report.tracebacks import Traceback, tracebacks_in
from raykeeper.history.text import shortened, without_ansi
from raykeeper.masking import masked_text

ACTORS = """
    SELECT name, job_id FROM actors WHERE name LIKE 'SERVE_%' AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
    ORDER BY start_ns DESC NULLS LAST LIMIT 1000
"""
"""Serve's own actors, the newest first: all of them belong to the job that started Serve."""
_FILE = re.compile(r"serve/(?P<kind>proxy|replica|controller)_.*?\.log(?:\.\d+)?")
_BYTES_LIMIT = {"proxy": 16 << 20, "replica": 4 << 20, "controller": 2 << 20}
"""Of the end of one file."""
_ALL_BYTES_LIMIT = 48 << 20
"""Of all files together: the newest first."""
ERRORS_LIMIT = 20
"""Kinds of errors that are told apart."""
_ENTRY = re.compile(
    r"(?P<level>[A-Z]+) \d{4}-\d\d-\d\d [\d:,.]+ (?P<component>\S+) (?P<id>\S+)"
    r"(?: (?P<request>[0-9a-zA-Z-]{8,}))? -- (?P<text>.*)"
)
_ACCESS = re.compile(r"(?:-- |\"message\": ?\")[A-Z]{3,7} \S{0,2000} (\d)\d\d [\d.]+ms")
"""A request in the log of a proxy, as text or as JSON; its group is the first digit of the status."""
_REPLICA = re.compile(r"Replica\(id='(?P<id>[^']*)', deployment='(?P<deployment>[^']*)', app='(?P<app>[^']*)'\)")
_FAILED_LEVELS = frozenset({"ERROR", "CRITICAL"})


@dataclass(frozen=True)
class ServeError:
    """What replicas raised in the same way, over requests or while Serve looked after them."""

    who: Who
    error: str
    where: CodeLocation | None
    times: int
    """Requests, or replicas."""
    excerpt: Excerpt
    is_of_replica: bool = False
    """It kept a replica from starting or from being healthy: no request tells of it."""

    @property
    def id(self) -> str:
        return f"{self.who.text} {title_of(digest(self.error))}"


@dataclass(frozen=True)
class ServeRecord:
    requests: int = 0
    failed: int = 0
    """Those answered with 5xx."""
    is_cut: bool = False
    """There were more: only the ends of long logs are read."""
    errors: tuple[ServeError, ...] = ()
    """The most frequent first."""

    @property
    def in_words(self) -> str:
        """How many requests failed; empty where none did."""
        if not self.failed:
            return ""
        of = f"{self.failed:,} of {'the last ' if self.is_cut else ''}{self.requests:,} requests failed"
        kinds = [f"{one.times:,} x {one.error}" for one in self.errors if not one.is_of_replica]
        return f"{of}: {'; '.join(kinds[:3])}" if kinds else of


STATES = "/api/serve/applications/"
_UNWELL = ("DEPLOY_FAILED", "UNHEALTHY")


class _State(msgspec.Struct):
    status: str = ""
    message: str = ""


class _Application(msgspec.Struct):
    status: str = ""
    message: str = ""
    deployments: dict[str, _State] = {}


class ServeStates(msgspec.Struct):
    """What Ray's dashboard says of Serve."""

    applications: dict[str, _Application] = {}


@dataclass(frozen=True)
class LogEntry:
    """One entry of a log of Serve's, with the lines that belong to it."""

    level: str
    text: str
    request: str = ""
    number: int = 0
    """Of its first line, from 0."""


@dataclass
class _Tally:
    """Errors of one kind, as they are found."""

    first: ServeError
    requests: set[str] = field(default_factory=set)
    times: int = 0

    @property
    def error(self) -> ServeError:
        return replace(self.first, times=len(self.requests) or self.times)


async def read_serve(context: SessionContext, job_id: str | None) -> ServeRecord:
    """Of the session's Serve, if it is the job's; an empty record where there is none."""
    if not await context.rows(ACTORS, {"job_id": job_id}):
        return ServeRecord()
    logs = await library_logs(context, _FILE, _BYTES_LIMIT, _ALL_BYTES_LIMIT)
    record = await asyncio.to_thread(serve_record, logs)
    states = await context.polled_body(STATES, ServeStates)
    return with_applications(record, states or ServeStates())


def with_applications(record: ServeRecord, states: ServeStates) -> ServeRecord:
    """With the applications that were not well when they were asked last, where no log tells why. Pure."""
    known = {one.error for one in record.errors}
    told = (_of_application(name, app) for name, app in states.applications.items() if app.status in _UNWELL)
    return replace(record, errors=(*record.errors, *(one for one in told if one.error not in known)))


def _of_application(name: str, app: _Application) -> ServeError:
    unwell = [one.message for one in app.deployments.values() if one.status in _UNWELL]
    text = masked_text(without_ansi("\n".join([*unwell, app.message])), keeps_lines=True)
    found = [one for one in tracebacks_in(text) if one.users.users_frame is not None]
    title = f"what Serve says about application {name}"
    who = Who(WhoKind.APPLICATION, name)
    if not found:
        first = next((line.strip() for line in text.split("\n") if line.strip()), f"it is {app.status}")
        return ServeError(who, first, None, 1, Excerpt(title, (ShownLine(shortened(first)),)), is_of_replica=True)
    frame = found[0].users.users_frame
    where = frame.location if frame else None
    excerpt = traceback_excerpt(title, text, found[0])
    return ServeError(who, found[0].users.error, where, 1, excerpt, is_of_replica=True)


def serve_record(logs: Sequence[LibraryLog]) -> ServeRecord:
    """Pure."""
    requests = failed = 0
    tallies: dict[str, _Tally] = {}
    for log in logs:
        if log.kind == "proxy":
            answers = _ACCESS.findall(log.text)
            requests, failed = requests + len(answers), failed + answers.count("5")
            continue
        for entry in entries_of(log.text):
            if entry.level in _FAILED_LEVELS:
                _take_error(tallies, log, entry)
    errors = sorted((one.error for one in tallies.values()), key=lambda one: (-one.times, one.id))
    is_cut = any(log.kind == "proxy" and not log.is_whole for log in logs)
    return ServeRecord(requests, failed, is_cut, tuple(errors[:ERRORS_LIMIT]))


def _take_error(tallies: dict[str, _Tally], log: LibraryLog, entry: LogEntry) -> None:
    readable = replace(entry, text=masked_text(without_ansi(entry.text), keeps_lines=True))
    found = [one for one in tracebacks_in(readable.text) if one.users.users_frame is not None]
    if not found:
        return
    error = _error(log, readable, found[-1])
    if error.id not in tallies and len(tallies) >= 10 * ERRORS_LIMIT:
        return
    tally = tallies.setdefault(error.id, _Tally(error))
    tally.times += 1
    if entry.request and log.kind == "replica":
        tally.requests.add(entry.request)


def _error(log: LibraryLog, entry: LogEntry, trace: Traceback) -> ServeError:
    raised = trace.users
    frame, named = raised.users_frame, _REPLICA.search(entry.text)
    if raised.call:
        who = called(raised.call)
    else:
        who = deployment(named["deployment"], named["app"]) if named else _of_file(log.file)
    address = Address(
        node_id=log.node_id,
        file=log.file,
        line=entry.number + raised.last + 1 if log.is_whole else None,
        offset=log.offset,
    )
    return ServeError(
        who=who,
        error=raised.error,
        where=frame.location if frame else None,
        times=1,
        excerpt=traceback_excerpt(f"traceback in {log.file}", entry.text, trace, address),
        is_of_replica=log.kind == "controller",
    )


def _of_file(file: str) -> Who:
    """`serve/replica_chat_Model_qm0kxuyo.log`: the id has no underscore, and application and deployment mostly none."""
    app, _, name = file.partition("replica_")[2].rpartition("_")[0].partition("_")
    return deployment(name or app, app if name else "")


def entries_of(text: str) -> Iterator[LogEntry]:
    """Entries as text or, where Serve was told to write JSON, as that."""
    held: list[str] = []
    head: tuple[str, str, int] | None = None
    for number, line in enumerate(text.split("\n")):
        begun = _begun(line)
        if begun is None:
            held.append(line)
            continue
        if head is not None:
            yield LogEntry(head[0], "\n".join(held).rstrip("\n"), head[1], head[2])
        level, request, message = begun
        head, held = (level, request, number), [message]
    if head is not None:
        yield LogEntry(head[0], "\n".join(held).rstrip("\n"), head[1], head[2])


def _begun(line: str) -> tuple[str, str, str] | None:
    """Level, request and text of an entry that begins with this line; None where the line goes on with another."""
    if found := _ENTRY.match(line):
        return found["level"], found["request"] or "", found["text"]
    if not line.startswith("{"):
        return None
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return _of_json(told) if isinstance(told, Mapping) and "message" in told else None


def _of_json(told: Mapping[str, object]) -> tuple[str, str, str]:
    words = [str(told["message"]), *(str(told[name]) for name in ("exc_text", "exc_info") if told.get(name))]
    return str(told.get("levelname", "")), str(told.get("request_id") or ""), "\n".join(words)
