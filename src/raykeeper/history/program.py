"""The history server itself: builds the real parts from the settings, and answers until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.history.alljobs.writing import SummaryWriter
from raykeeper.history.app import make_app
from raykeeper.history.asked import Asked, MetricsLinks
from raykeeper.history.catalog import Catalog
from raykeeper.history.database import Database, DatabaseSettings
from raykeeper.history.heap import give_memory_back
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.ingest.sessions import OnFinal, Sessions, SessionsSettings
from raykeeper.history.kubefacts.reading import KubeFactsReader
from raykeeper.history.kuberay.overlay import KubeRayOverlay
from raykeeper.history.kuberayapi.live import Presence
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.observer.wanted import is_wanted
from raykeeper.history.opened import OpenedSession
from raykeeper.history.pages.dashboard import find_dashboard
from raykeeper.history.parts import Parts
from raykeeper.history.serving import make_server, open_listener
from raykeeper.history.settings import GrafanaSettings, HistorySettings, HistoryStoreSettings
from raykeeper.history.storeclock import StoreClock
from raykeeper.logs import Log
from raykeeper.settings.addresses import Address, parse_address
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.storesettings import StoreSettings
from raykeeper.storage.settings.urls import parse_store_url

log = Log("raykeeper.history")


def serve(settings: HistorySettings, environment: Mapping[str, str]) -> int:
    """Answer until SIGTERM or SIGINT; the exit code. Stops by name on a setting that cannot be used."""
    give_memory_back()
    store = _store_settings(settings.store, environment)
    folder = _cache_folder(settings.cache.folder)
    address = parse_address("--bind", settings.bind) or Address("127.0.0.1", 0)
    with open_listener("--bind", settings.bind, address) as listener:
        uvloop.run(_answer(settings, store, folder, listener, environment))
    return 0


async def _answer(
    settings: HistorySettings,
    store: StoreSettings,
    folder: Path,
    listener: socket.socket,
    environment: Mapping[str, str],
) -> None:
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(built_parts(settings, store, folder))
        if is_wanted(settings.kubernetes, environment):
            await stack.enter_async_context(_observing(settings, store, environment, parts.metrics.registry))
            presence = await stack.enter_async_context(_presence(settings, environment))
            parts = replace(parts, presence=presence)
        server = make_server(make_app(parts))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        host, port, *_ = listener.getsockname()
        log.info("listening", host=host, port=port, store=store.describe(), dashboard=parts.dashboard.is_there)
        await server.serve(sockets=[listener])
    log.info("ended")


@asynccontextmanager
async def built_parts(settings: HistorySettings, store: StoreSettings, folder: Path) -> AsyncIterator[Parts]:
    """The real parts; nothing is asked of the store yet."""
    clock = SystemClock()
    objects = KubeRayOverlay(open_store(store), clock)
    sessions = Sessions(objects, clock, SessionsSettings(folder, cache_bytes=settings.cache.max_bytes))
    database = Database(folder, DatabaseSettings(memory_bytes=settings.cache.query_memory_bytes))
    logs, kubernetes = LogStore(objects, clock), KubeFactsReader(objects)
    summaries = SummaryWriter(objects, lambda session: Asked(session, database, logs, kubernetes=kubernetes))
    sessions.on_final = _finisher(summaries, logs)
    try:
        yield Parts(
            catalog=Catalog(objects, clock),
            heartbeats=Heartbeats(objects, clock, StoreClock(objects, clock)),
            sessions=sessions,
            database=database,
            logs=logs,
            dashboard=find_dashboard(settings.dashboard_dir),
            access=settings.access,
            links=_links(settings.grafana),
            kubernetes=kubernetes,
        )
    finally:
        await sessions.close()
        await logs.close()
        await database.close()


def _finisher(summaries: SummaryWriter, logs: LogStore) -> OnFinal:
    """What the first replica that reads a session to its end does for all others."""

    async def finish(session: OpenedSession) -> None:
        if await summaries.write(session):
            logs.collect(session.id)

    return finish


def _observing(
    settings: HistorySettings, store: StoreSettings, environment: Mapping[str, str], registry: CollectorRegistry
) -> AbstractAsyncContextManager[None]:
    # Imported here because a client of Kubernetes costs 10 MB, which a server elsewhere need not pay.
    from raykeeper.history.observer.starting import observing

    return observing(settings.kubernetes, store, environment, registry)


def _presence(settings: HistorySettings, environment: Mapping[str, str]) -> AbstractAsyncContextManager[Presence]:
    from raykeeper.history.kuberayapi.presence import kubernetes_presence  # here for the same reason

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


def _links(grafana: GrafanaSettings) -> MetricsLinks:
    return MetricsLinks(grafana.host, grafana.org_id, grafana.cluster_filter, grafana.prometheus_name)
