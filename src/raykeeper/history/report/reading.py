"""A report for the command line: made here from a store, or asked of a history server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec

from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.history.asked import Asked
from raykeeper.history.opened import OpenedSession
from raykeeper.history.parts import Parts
from raykeeper.history.program import built_parts
from raykeeper.history.report.making import JobUnknown, make_report
from raykeeper.history.report.model import Report
from raykeeper.history.report.unstarted import report_on_unstarted
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.layout.keys import SessionId
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

LATEST = "latest"
_LOOK_SECONDS = 0.2
_ANSWER_CHARS = 500
_SERVER_SECONDS = 120.0  # a large session that nobody opened before is ingested first


@dataclass(frozen=True)
class Subject:
    """What a report is wanted about."""

    session: SessionId
    job: str | None

    @property
    def path(self) -> str:
        """Where a history server has the report."""
        names = (self.session.namespace, self.session.cluster, self.session.session)
        prefix = "/s/" + "/".join(quote(name, safe="") for name in names) + "/api/keeper/v1"
        return f"{prefix}/jobs/{quote(self.job, safe='')}/report" if self.job else f"{prefix}/report"


def parse_subject(text: str) -> Subject:
    """From `<namespace>/<cluster>/<session>[/<job>]`; the session may be `latest`."""
    names = text.strip("/").split("/")
    if len(names) not in (3, 4) or not all(names):
        raise Misconfigured("SUBJECT", text, "it must be <namespace>/<cluster>/<session>[/<job>]")
    return Subject(SessionId(*names[:3]), names[3] if len(names) == 4 else None)


async def report_from_store(url: str, subject: Subject, environment: Mapping[str, str], cache: Path | None) -> Report:
    """Made from the objects of a store; what is new in it is ingested first."""
    settings = HistorySettings(HistoryStoreSettings(url), cache=CacheSettings(cache or CacheSettings.folder))
    folder = settings.cache.folder.expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = parse_store_url(url, environment)
    async with built_parts(settings, store, folder) as parts:
        session = await _known(parts, subject)
        if session is None:
            return await _unstarted(open_store(store), subject)
        asked = await opened_whole(parts, session)
        try:
            return await make_report(asked, subject.job)
        except JobUnknown as exc:
            raise Misconfigured("SUBJECT", subject.job, str(exc)) from exc


async def _known(parts: Parts, subject: Subject) -> SessionId | None:
    """None where the newest session is wanted of a cluster that never had one."""
    session = subject.session
    if session.session == LATEST:
        return await parts.catalog.newest_of_cluster(session.namespace, session.cluster)
    await parts.check_known(session)
    return session


async def _unstarted(store: ObjectStore, subject: Subject) -> Report:
    report = await report_on_unstarted(store, subject.session.namespace, subject.session.cluster)
    if report is None:
        raise Misconfigured("SUBJECT", str(subject.session), "the cluster has no session")
    return report


async def opened_whole(parts: Parts, session: SessionId) -> Asked:
    """The session once all of it is read."""
    while True:
        asked = await parts.ask(session)
        if not isinstance(asked.session, OpenedSession) or asked.session.progress.is_done:
            return asked
        await asyncio.sleep(_LOOK_SECONDS)


async def report_from_server(url: str, subject: Subject, token: str) -> Report:
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
