"""The server process: builds the services from the settings, and answers until it is told to stop."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.history.alerts.watch import alerting
from raykeeper.history.http.app import make_app
from raykeeper.history.http.listener import make_server, open_listener
from raykeeper.history.http.pages.dashboard import DashboardFiles, find_dashboard
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import OnFinal, Sessions, SessionsSettings
from raykeeper.history.jobs_list.summary import SummaryWriter
from raykeeper.history.logs.store import LogStore
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.query.cache import ResponseCache
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database, DatabaseSettings
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.samples.store import SampleStore
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings, KubernetesSettings
from raykeeper.history.store.background_look import BackgroundLooks
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.kube_facts import KubeFactsReader
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.history.store.live_sessions import Presence
from raykeeper.history.text import counted
from raykeeper.kube.connect.incluster import SERVICE_ACCOUNT_FOLDER, is_given
from raykeeper.layout.keys import CATALOG_PREFIX
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log
from raykeeper.settings.addresses import Address, parse_address
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.errors import StoreRefused
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.urls import parse_store_url

# Numbers of <malloc.h>. glibc raises both thresholds to the largest block it ever saw freed, until they are set.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE_BYTES = 256 * 1024
_KEPT_BYTES = 1 << 20
_ARENAS = 2  # one for each thread that ever allocated, at most eight a core, by default


def give_memory_back() -> None:
    """Have freed blocks above 256 KB returned to the system at once. Where there is no glibc, nothing changes.

    A server that had sent 10,000 tasks in full kept 140 MB for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_M_ARENA_MAX, _ARENAS)


def is_wanted(settings: KubernetesSettings, environment: Mapping[str, str]) -> bool:
    """Whether Kubernetes is observed: if it was said, or if there is one to be seen."""
    if settings.facts == "auto":
        return settings.kubeconfig is not None or is_given(environment, SERVICE_ACCOUNT_FOLDER)
    return settings.facts == "on"


log = Log("raykeeper.history")
_CHECK_SECONDS = 10.0
_COUNTED_SESSIONS = 5000


def serve(settings: HistorySettings, environment: Mapping[str, str]) -> int:
    """Answer until SIGTERM or SIGINT; the exit code. Stops by name on a setting that cannot be used."""
    give_memory_back()
    store = _store_settings(settings.store, environment)
    dashboard = _dashboard(settings.dashboard_dir)
    folder = _cache_folder(settings.cache.folder)
    address = parse_address("--bind", settings.bind) or Address("127.0.0.1", 0)
    with open_listener("--bind", settings.bind, address) as listener:
        if store.backend is LOCAL and not Path(store.bucket).is_dir():
            raise Misconfigured(*_store_setting(settings, store), "there is no such folder on this machine")
        uvloop.run(_answer(settings, store, folder, listener, dashboard, environment))
    return 0


async def _answer(
    settings: HistorySettings,
    store: StoreSettings,
    folder: Path,
    listener: socket.socket,
    dashboard: DashboardFiles,
    environment: Mapping[str, str],
) -> None:
    await _check_store(settings, store)
    async with AsyncExitStack() as stack:
        history = await stack.enter_async_context(open_history(settings, store, folder))
        if is_wanted(settings.kubernetes, environment):
            await stack.enter_async_context(_observing(settings, store, environment, history.metrics.registry))
            presence = await stack.enter_async_context(_presence(settings, environment))
            history = replace(history, presence=presence)
        if settings.alerts is not None:
            await stack.enter_async_context(alerting(history, settings.alerts))
        server = make_server(make_app(history, dashboard))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        host, port, *_ = listener.getsockname()
        if sys.stderr.isatty():
            await _greet(history, store, f"http://{host}:{port}", dashboard)
        log.info("listening", host=host, port=port, store=store.describe(), dashboard=dashboard.is_there)
        await server.serve(sockets=[listener])
    log.info("ended")


def _dashboard(folder: Path | None) -> DashboardFiles:
    """That of the folder that was named; manifests of KubeRay name one that our image has not, and needs not."""
    found = find_dashboard(folder)
    if folder is None or found.is_there:
        return found
    log.warning("no dashboard of Ray in --dashboard-dir; taking another, if there is one", folder=str(folder))
    return find_dashboard(None)


def _store_setting(settings: HistorySettings, store: StoreSettings) -> tuple[str, str]:
    """Which setting says where the store is, and what it says."""
    return ("--store", settings.store.url) if settings.store.url else ("--storage-backend", store.describe())


async def _check_store(settings: HistorySettings, store: StoreSettings) -> None:
    """Raises Misconfigured for a store that is not there, or refuses us. One that is away may come back."""
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await open_store(store).list_folders(CATALOG_PREFIX)
    except StoreRefused as exc:
        raise Misconfigured(*_store_setting(settings, store), f"{exc.cause}: {exc.cure}") from exc
    except (TimeoutError, RaykeeperError) as exc:
        log.warning("store does not answer yet", store=store.describe(), cause=str(exc) or "no answer in time")


async def _greet(history: History, store: StoreSettings, url: str, dashboard: DashboardFiles) -> None:
    """One line for the person who started the server in a terminal."""
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            page = await history.catalog.page(_COUNTED_SESSIONS)
        sessions = counted(len(page.entries), "session") + (" and more" if page.next_place else "")
    except (TimeoutError, RaykeeperError):
        sessions = "sessions"
    rays = "" if dashboard.is_there else " · without Ray's dashboard (see --dashboard-dir)"
    told = f"Raykeeper {version('raykeeper')} · {sessions} in {store.describe()} · {url}{rays}"
    print(told, file=sys.stderr, flush=True)  # noqa: T201 - for a person, beside the log


@asynccontextmanager
async def open_history(settings: HistorySettings, store: StoreSettings, folder: Path) -> AsyncIterator[History]:
    """The real parts; nothing is asked of the store yet."""
    clock = SystemClock()
    objects = KubeRayOverlay(open_store(store), clock)
    sessions = Sessions(objects, clock, SessionsSettings(folder, cache_bytes=settings.cache.max_bytes))
    database = Database(folder, DatabaseSettings(memory_bytes=settings.cache.query_memory_bytes))
    logs, kubernetes = LogStore(objects, clock), KubeFactsReader(objects)
    samples, cache = SampleStore(objects, sessions.cache, clock), ResponseCache()
    metrics = HistoryMetrics()
    summaries = SummaryWriter(
        objects,
        lambda session: SessionContext(session, database, logs, kubernetes=kubernetes, cache=cache, samples=samples),
        lambda summary: _count_failed_jobs(summary, metrics),
    )
    sessions.on_final = _finisher(summaries, logs, samples)
    try:
        yield History(
            catalog=Catalog(objects, clock),
            heartbeats=Heartbeats(objects, clock, StoreClock(objects, clock)),
            sessions=sessions,
            database=database,
            logs=logs,
            access=settings.access,
            grafana=settings.grafana,
            metrics=metrics,
            kubernetes=kubernetes,
            cache=cache,
            samples=samples,
            prices=settings.prices,
            clock=clock,
            looks=BackgroundLooks(clock),
        )
    finally:
        await samples.close()
        await sessions.close()
        await cache.close()
        await logs.close()
        await database.close()


def _count_failed_jobs(summary: SessionSummary, metrics: HistoryMetrics) -> None:
    for job in summary.jobs:
        if job.outcome == Outcome.FAILED:
            metrics.count_failed_job(job.failures[0].rule if job.failures else "")


def _finisher(summaries: SummaryWriter, logs: LogStore, samples: SampleStore) -> OnFinal:
    """What the first replica that reads a session to its end does for all others."""

    async def finish(session: Session) -> None:
        if await summaries.write(session):
            logs.collect(session.id)
            samples.collect(session)

    return finish


def _observing(
    settings: HistorySettings, store: StoreSettings, environment: Mapping[str, str], registry: CollectorRegistry
) -> AbstractAsyncContextManager[None]:
    # Imported here because a client of Kubernetes costs 10 MB, which a server elsewhere need not pay.
    from raykeeper.history.observer.leader import observing

    return observing(settings.kubernetes, store, environment, registry)


def _presence(settings: HistorySettings, environment: Mapping[str, str]) -> AbstractAsyncContextManager[Presence]:
    from raykeeper.history.http.kuberay_api.presence import kubernetes_presence  # here for the same reason

    return kubernetes_presence(settings.kubernetes, environment)


def _store_settings(store: HistoryStoreSettings, environment: Mapping[str, str]) -> StoreSettings:
    if store.url:
        return parse_store_url(store.url, environment)
    return read_store_settings(store.backend, store.root_dir, environment, store.config_file)


def _cache_folder(folder: Path) -> Path:
    folder = folder.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise Misconfigured("--cache-dir", str(folder), f"it must be a writable folder ({exc.strerror})") from exc
    return folder
