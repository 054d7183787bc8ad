"""`raykeeper report`: reads a report from a store or a server, prints it, and says by the exit code whether something
failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec

from raykeeper.errors import Misconfigured, RaykeeperError, Unavailable
from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.errors import NotFound
from raykeeper.history.program import open_history
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.make import JobUnknown, make_report
from raykeeper.history.report.model import Report
from raykeeper.history.report.unstarted import report_on_rayjob, report_on_unstarted, session_of_rayjob
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.history.urls import LATEST, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

_LOOK_SECONDS = 0.2
_ANSWER_CHARS = 500
_SERVER_SECONDS = 120.0  # a large session that nobody opened before is ingested first


@dataclass(frozen=True)
class RayJobSubject:
    """A report is wanted about a RayJob, wherever it ran, and also if it never did."""

    namespace: str
    rayjob: str

    @property
    def path(self) -> str:
        """Where a history server has the report."""
        names = (quote(name, safe="") for name in (self.namespace, self.rayjob))
        return f"/api/keeper/v1/rayjobs/{'/'.join(names)}/report"


@dataclass(frozen=True)
class Subject:
    """A report is wanted about a session, or about one of its jobs."""

    session: SessionId
    job: str | None

    @property
    def path(self) -> str:
        """Where a history server has the report."""
        prefix = f"{session_path(self.session)}api/keeper/v1"
        return f"{prefix}/jobs/{quote(self.job, safe='')}/report" if self.job else f"{prefix}/report"


def parse_subject(text: str) -> Subject | RayJobSubject:
    """From `<namespace>/<cluster>/<session>[/<job>]` or `<namespace>/<RayJob>`; the session may be `latest`."""
    names = text.strip("/").split("/")
    if len(names) not in (2, 3, 4) or not all(names):
        forms = "<namespace>/<cluster>/<session>[/<job>], or <namespace>/<RayJob>"
        raise Misconfigured("SUBJECT", text, f"it must be {forms}")
    if len(names) == 2:
        return RayJobSubject(*names)
    return Subject(SessionId(*names[:3]), names[3] if len(names) == 4 else None)


async def report_from_store(
    url: str, subject: Subject | RayJobSubject, environment: Mapping[str, str], cache: Path | None
) -> Report:
    """Made from the objects of a store; what is new in it is ingested first."""
    settings = HistorySettings(HistoryStoreSettings(url), cache=CacheSettings(cache or CacheSettings.folder))
    folder = settings.cache.folder.expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = parse_store_url(url, environment)
    async with open_history(settings, store, folder) as history:
        if isinstance(subject, RayJobSubject):
            return await _of_rayjob(history, subject)
        session = await _known(history, subject)
        if session is None:
            return await _unstarted(open_store(store), subject)
        return await _of_session(history, session, subject.job)


async def _of_rayjob(history: History, subject: RayJobSubject) -> Report:
    try:
        found = await session_of_rayjob(history, subject.namespace, subject.rayjob)
    except NotFound as exc:
        raise Misconfigured("SUBJECT", f"{subject.namespace}/{subject.rayjob}", str(exc)) from exc
    if isinstance(found, RayJobRecord):
        return await report_on_rayjob(history.catalog.store, found)
    return await _of_session(history, found, subject.rayjob)


async def _of_session(history: History, session: SessionId, job: str | None) -> Report:
    context = await opened_whole(history, session)
    try:
        return await make_report(context, job)
    except JobUnknown as exc:
        raise Misconfigured("SUBJECT", job, str(exc)) from exc


async def _known(history: History, subject: Subject) -> SessionId | None:
    """None where the newest session is wanted of a cluster that never had one."""
    session = subject.session
    if session.session == LATEST:
        return await history.catalog.newest_of_cluster(session.namespace, session.cluster)
    await history.check_known(session)
    return session


async def _unstarted(store: ObjectStore, subject: Subject) -> Report:
    report = await report_on_unstarted(store, subject.session.namespace, subject.session.cluster)
    if report is None:
        raise Misconfigured("SUBJECT", str(subject.session), "the cluster has no session")
    return report


async def opened_whole(history: History, session: SessionId) -> SessionContext:
    """The session once all of it is read."""
    while True:
        context = await history.open(session)
        if context.session.progress.is_done:
            return context
        await asyncio.sleep(_LOOK_SECONDS)


async def report_from_server(url: str, subject: Subject | RayJobSubject, token: str) -> Report:
    """As a history server answers it."""
    if not url.startswith(("http://", "https://")):
        raise Misconfigured("--server", url, "it must begin with http:// or https://")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=_SERVER_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as client,
            client.get(url.rstrip("/") + subject.path) as response,
        ):
            body = await response.read()
            if response.status == 200:
                return msgspec.json.decode(body, type=Report)
            said = _said(body)
    except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as exc:
        raise Unavailable(url, str(exc) or type(exc).__name__) from exc
    raise Unavailable(url, f"it answered {response.status}: {said}")


def _said(body: bytes) -> str:
    """Why there is no report, in the server's own words; something between us and it may answer in any form."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = {}
    return answer.get("error") or body.decode(errors="replace").strip()[:_ANSWER_CHARS]


NOTHING_FAILED, FAILURES, NO_REPORT = 0, 1, 2


@dataclass(frozen=True)
class ReportCommand:
    """What the command line said."""

    subject: str
    store: str = ""
    server: str = ""
    token_file: Path | None = None
    cache_dir: Path | None = None
    as_json: bool = False


class NoReport(Exception):
    """There is no report; the text says why."""


def run(command: ReportCommand, environment: Mapping[str, str], screen: ReportScreen) -> int:
    """Print the report; the exit code. Raises NoReport."""
    try:
        report = asyncio.run(_read(command, environment))
    except (RaykeeperError, OSError) as exc:
        raise NoReport(str(exc)) from exc
    if command.as_json:
        screen.show_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        screen.show(report)
    return NOTHING_FAILED if report.outcome.is_well else FAILURES


async def _read(command: ReportCommand, environment: Mapping[str, str]) -> Report:
    subject = parse_subject(command.subject)
    if command.store and command.server:
        raise NoReport("give --store or --server, not both")
    if not (command.store or command.server):
        raise NoReport("say where the history is: --store or --server")
    if command.store:
        return await report_from_store(command.store, subject, environment, command.cache_dir)
    return await report_from_server(command.server, subject, _token(command.token_file, environment))


def _token(file: Path | None, environment: Mapping[str, str]) -> str:
    if file is None:
        return environment.get("RAYKEEPER_AUTH_TOKEN", "")
    try:
        return file.read_text().strip()
    except OSError as exc:
        raise Misconfigured("--token-file", str(file), f"it cannot be read: {exc.strerror}") from exc
