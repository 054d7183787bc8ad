"""What commands are about, and where they find it: a session, a job or a RayJob, in a store or on a history server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec

from raykeeper.errors import Misconfigured, RaykeeperError, Unavailable
from raykeeper.history.commands.kept_logins import kept_token
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.program import open_history
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.history.urls import LATEST, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.settings.urls import parse_store_url

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
        return f"{PREFIX}/rayjobs/{'/'.join(names)}/report"


@dataclass(frozen=True)
class Subject:
    """A report is wanted about a session, or about one of its jobs."""

    session: SessionId
    job: str | None

    @property
    def path(self) -> str:
        """Where a history server has the report."""
        prefix = f"{session_path(self.session).rstrip('/')}{PREFIX}"
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


@dataclass(frozen=True)
class Source:
    """Where the history is, as the command line said."""

    store: str = ""
    server: str = ""
    token_file: Path | None = None
    cache_dir: Path | None = None
    given_token: str = field(default="", repr=False)

    def check(self) -> None:
        """Raises NoSource."""
        if self.store and self.server:
            raise NoSource("give --store or --server, not both")
        if not (self.store or self.server):
            raise NoSource("say where the history is: --store or --server")

    def token(self, environment: Mapping[str, str]) -> str:
        """Of the server: given, in the environment, or kept by `raykeeper login`. Raises Misconfigured, LoginEnded."""
        if self.given_token:
            return self.given_token
        if self.token_file is None:
            of_variables = environment.get("RAYKEEPER_TOKEN") or environment.get("RAYKEEPER_AUTH_TOKEN")
            return of_variables or kept_token(self.server, environment)
        try:
            return self.token_file.read_text().strip()
        except OSError as exc:
            raise Misconfigured("--token-file", str(self.token_file), f"it cannot be read: {exc.strerror}") from exc


class NoSource(RaykeeperError):
    """Nobody can tell where the history is; the text says why."""


def _store_to_read(url: str, environment: Mapping[str, str]) -> StoreSettings:
    """A folder that is not there is a slip, not a store without sessions."""
    store = parse_store_url(url, environment)
    if store.backend is LOCAL and not Path(store.bucket).is_dir():
        raise Misconfigured("--store", url, "there is no such folder on this machine")
    return store


@asynccontextmanager
async def history_over(url: str, environment: Mapping[str, str], cache: Path | None) -> AsyncIterator[History]:
    """A history server's parts over a store, without the server. Raises Misconfigured."""
    store = _store_to_read(url, environment)
    settings = HistorySettings(HistoryStoreSettings(url), cache=CacheSettings(cache or CacheSettings.folder))
    folder = settings.cache.folder.expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_history(settings, store, folder) as history:
        yield history


async def known_session(history: History, subject: Subject) -> SessionId | None:
    """None where the newest session is wanted of a cluster that never had one."""
    session = subject.session
    if session.session == LATEST:
        return await history.catalog.newest_of_cluster(session.namespace, session.cluster)
    await history.check_known(session)
    return session


async def opened_whole(history: History, session: SessionId) -> SessionContext:
    """The session once all of it is read."""
    while True:
        context = await history.open(session)
        if context.session.progress.is_done:
            return context
        await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def answer_of(url: str, path: str, token: str) -> AsyncIterator[aiohttp.ClientResponse]:
    """What a history server answers. Raises Misconfigured, and Unavailable for anything but 200."""
    if not url.startswith(("http://", "https://")):
        raise Misconfigured("--server", url, "it must begin with http:// or https://")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=_SERVER_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as client,
            client.get(url.rstrip("/") + path) as response,
        ):
            if response.status != 200:
                raise Unavailable(url, f"it answered {response.status}: {_said(await response.read())}")
            yield response
    except (aiohttp.ClientError, TimeoutError) as exc:
        raise Unavailable(url, str(exc) or type(exc).__name__) from exc


async def ask_server(url: str, path: str, token: str) -> bytes:
    """The whole answer. Raises Misconfigured and Unavailable."""
    async with answer_of(url, path, token) as response:
        return await response.read()


def _said(body: bytes) -> str:
    """Why there is no report, in the server's own words; something between us and it may answer in any form."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = {}
    return answer.get("error") or body.decode(errors="replace").strip()[:_ANSWER_CHARS]
