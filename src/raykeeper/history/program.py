"""The server process: builds the services from the settings, and answers until it is told to stop."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvloop
from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.history.alerts.watch import alerting
from raykeeper.history.http.access.opening import open_authenticator
from raykeeper.history.http.app import make_app, with_access
from raykeeper.history.http.listener import Server, make_server, open_listener
from raykeeper.history.http.monitoring import monitoring_app
from raykeeper.history.http.pages.dashboard import DashboardFiles, find_dashboard
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import OnFinal, Sessions, SessionsSettings
from raykeeper.history.jobs_list.summary import SummaryWriter
from raykeeper.history.live_objects.model import LiveObjects
from raykeeper.history.logs.store import LogStore
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.query.cache import ResponseCache
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database, DatabaseSettings
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.retention.metrics import RetentionMetrics
from raykeeper.history.retention.sweeper import SweepLoop
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.history.samples.store import SampleStore
from raykeeper.history.settings import FactsMode, HistorySettings, HistoryStoreSettings, KubernetesSettings
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
_SWEEP_END_SECONDS = 5.0
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


def is_wanted(mode: FactsMode, settings: KubernetesSettings, environment: Mapping[str, str]) -> bool:
    """Whether Kubernetes is asked for this: if it was said, or if there is one to be seen."""
    if mode == "auto":
        return settings.kubeconfig is not None or is_given(environment, SERVICE_ACCOUNT_FOLDER)
    return mode == "on"


log = Log("raykeeper.history")
_CHECK_SECONDS = 10.0
_COUNTED_SESSIONS = 5000


def serve(settings: HistorySettings, environment: Mapping[str, str]) -> int:
    """Answer until SIGTERM or SIGINT; the exit code. Stops by name on a setting that cannot be used."""
    give_memory_back()
    store = _store_settings(settings.store, environment)
    dashboard = _dashboard(settings.dashboard_dir)
    folder = _cache_folder(settings.cache.folder)
    with ExitStack() as stack:
        listeners = [stack.enter_context(_listener("--bind", settings.bind))]
        if settings.monitoring_bind:
            listeners.append(stack.enter_context(_listener("--monitoring-bind", settings.monitoring_bind)))
        if store.backend is LOCAL:
            _check_folder(settings, store)
        uvloop.run(_answer(settings, store, folder, listeners, dashboard, environment))
    return 0


def _listener(setting: str, bind: str) -> socket.socket:
    return open_listener(setting, bind, parse_address(setting, bind) or Address("127.0.0.1", 0))


async def _answer(
    settings: HistorySettings,
    store: StoreSettings,
    folder: Path,
    listeners: Sequence[socket.socket],
    dashboard: DashboardFiles,
    environment: Mapping[str, str],
) -> None:
    """Answer at the first listener, and at the second about monitoring."""
    await _check_store(settings, store)
    async with AsyncExitStack() as stack:
        history = await stack.enter_async_context(open_history(settings, store, folder))
        sweeps, kubernetes = _sweeps(settings.retention, store, history), settings.kubernetes
        if is_wanted(kubernetes.facts, kubernetes, environment):
            await stack.enter_async_context(_observing(settings, store, environment, history.metrics.registry, sweeps))
            presence = await stack.enter_async_context(_presence(settings, environment))
            history = replace(history, presence=presence)
        elif sweeps is not None:
            await stack.enter_async_context(_sweeping(sweeps))
        if is_wanted(kubernetes.live_objects, kubernetes, environment):
            objects = await stack.enter_async_context(_live_objects(settings, environment))
            history = replace(history, live_objects=objects)
        if settings.alerts is not None:
            await stack.enter_async_context(alerting(history, settings.alerts))
        authenticator = await stack.enter_async_context(
            open_authenticator(settings.access, kubernetes, environment, history.catalog.store, history.clock)
        )
        app = make_app(history, dashboard, authenticator)
        servers = [make_server(app)]
        if len(listeners) > 1:
            guard = partial(with_access, access=settings.access, authenticator=authenticator)
            monitoring = monitoring_app(settings.grafana.url, app, guard)
            servers.append(make_server(await stack.enter_async_context(monitoring)))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stop_all, servers)
        host, port, *_ = listeners[0].getsockname()
        if sys.stderr.isatty():
            await _greet(history, store, f"http://{host}:{port}", dashboard)
        log.info("listening", host=host, port=port, store=store.describe(), dashboard=dashboard.is_there)
        for listener in listeners[1:]:
            host, port, *_ = listener.getsockname()
            log.info("listening for monitoring", host=host, port=port, grafana=settings.grafana.url or "none")
        await asyncio.gather(
            *(server.serve(sockets=[listener]) for server, listener in zip(servers, listeners, strict=True))
        )
    log.info("ended")


def _stop_all(servers: Sequence[Server]) -> None:
    for server in servers:
        server.stop()


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


def _check_folder(settings: HistorySettings, store: StoreSettings) -> None:
    """Raises Misconfigured for a path that leads nowhere."""
    folder = Path(store.bucket)
    if folder.is_dir():
        return
    if not is_awaited(folder, in_terminal=sys.stderr.isatty()):
        raise Misconfigured(*_store_setting(settings, store), "there is no such folder on this machine")
    log.warning("the store's folder is not there yet: waiting for the first collector", store=store.describe())


def is_awaited(folder: Path, *, in_terminal: bool) -> bool:
    """Whether a folder that is not there may still come: on a new volume the first collector makes it.

    Right below `/` nobody makes one: there a volume was not mounted, or the path has a slip. Whoever starts the server
    in a terminal has rather mistyped a path than been quicker than a collector, but for a volume.
    """
    parent = folder.parent
    if folder.exists() or not parent.is_dir() or parent == parent.parent:
        return False
    return parent.is_mount() or not in_terminal


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
            retention=settings.retention,
            clock=clock,
            looks=BackgroundLooks(clock),
            read_to_end=sessions.read_to_end,
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


Sweeps = Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]
"""Sweeps the store for as long as it is not cancelled; given whether this replica leads."""


def _sweeps(policy: RetentionPolicy | None, store: StoreSettings, history: History) -> Sweeps | None:
    """Retention of the bare store: what lies in KubeRay's layout is not seen by it, and stays."""
    if policy is None:
        return None
    metrics, name = RetentionMetrics(history.metrics.registry), f"retention of {socket.gethostname()}"

    async def sweep(may_lead: Callable[[], bool]) -> None:
        sweeps = SweepLoop(open_store(store), history.clock, policy, name, metrics, may_lead, history.read_to_end)
        await sweeps.run()

    return sweep


@asynccontextmanager
async def _sweeping(sweeps: Sweeps) -> AsyncIterator[None]:
    """Where no Kubernetes elects a leader, replicas agree by claims in the store alone."""
    task = asyncio.create_task(sweeps(lambda: True), name="retention")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_SWEEP_END_SECONDS)


def _observing(
    settings: HistorySettings,
    store: StoreSettings,
    environment: Mapping[str, str],
    registry: CollectorRegistry,
    sweeps: Sweeps | None,
) -> AbstractAsyncContextManager[None]:
    # Imported here because a client of Kubernetes costs 10 MB, which a server elsewhere need not pay.
    from raykeeper.history.observer.leader import observing

    return observing(settings.kubernetes, store, environment, registry, sweeps)


def _presence(settings: HistorySettings, environment: Mapping[str, str]) -> AbstractAsyncContextManager[Presence]:
    from raykeeper.history.http.kuberay_api.presence import kubernetes_presence  # here for the same reason

    return kubernetes_presence(settings.kubernetes, environment)


def _live_objects(
    settings: HistorySettings, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[LiveObjects]:
    from raykeeper.history.live_objects.kubernetes import kubernetes_objects  # here for the same reason

    return kubernetes_objects(settings.kubernetes, environment)


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
