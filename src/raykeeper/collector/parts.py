"""What a running collector is made of, from its settings. Nothing is asked of the world here."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING

from raykeeper.clock import Clock
from raykeeper.collector.bucket import Bucket
from raykeeper.collector.events.limits import EventSettings
from raykeeper.collector.events.path import EventPath
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.sessions import SessionWatch
from raykeeper.collector.settings import CollectorSettings

if TYPE_CHECKING:
    from raykeeper.collector.identity import Identity
    from raykeeper.collector.logs.shipper import Bucket as LogBucket
    from raykeeper.collector.logs.shipper import LogShipper
    from raykeeper.collector.logs.tracker import Sessions as LogSessions
    from raykeeper.collector.poll.poller import HeadPoller
    from raykeeper.collector.records import Recorder
    from raykeeper.collector.samples.sampler import Sampler
    from raykeeper.ray.dashboard import Dashboard, Limits
    from raykeeper.storage.backends.backend import StoreSettings
    from raykeeper.storage.store import ObjectStore


def find_store_settings(settings: CollectorSettings, environment: Mapping[str, str]) -> StoreSettings:
    """Where the bucket is. Raises `Misconfigured` naming what cannot be used."""
    from raykeeper.storage.settings.sources import read_store_settings
    from raykeeper.storage.settings.urls import parse_store_url

    bucket = settings.bucket
    if bucket.url:
        return parse_store_url(bucket.url, environment)
    return read_store_settings(bucket.backend, bucket.root_dir, environment, bucket.config_file)


class Intake:
    """What must be there within a second of the start: Ray is heard, whatever else is not ready."""

    def __init__(self, settings: CollectorSettings, clock: Clock, metrics: CollectorMetrics) -> None:
        self.bucket = Bucket(clock, metrics)
        self.sessions = SessionWatch(settings.node.ray_tmp_root, clock)
        self.events = EventPath(_event_settings(settings), self.bucket, self.sessions, clock, metrics)


@dataclass(frozen=True)
class Collector:
    """Everything that runs; what a setting switched off, or the head's alone, may be missing."""

    intake: Intake
    recorder: Recorder
    shipper: LogShipper | None
    poller: HeadPoller | None
    sampler: Sampler | None = None


def make_collector(
    settings: CollectorSettings, intake: Intake, store: ObjectStore, clock: Clock, metrics: CollectorMetrics
) -> Collector:
    """The rest. What it imports takes a while, so Ray must be heard before."""
    from raykeeper.collector.delivery import observe_delivery, observe_left_by
    from raykeeper.collector.poll.facts import HeadFacts
    from raykeeper.collector.records import Figures, Recorder

    shipper = (
        make_shipper(settings, intake.sessions, intake.bucket, clock, metrics) if settings.log_files.is_on else None
    )
    poller = _poller(settings, intake, clock, metrics) if settings.polls_head else None
    sampler = _sampler(settings, intake, clock, metrics) if settings.samples.is_on else None

    async def compare_clocks(key: str, data: bytes) -> float:
        return (await store.put_and_compare_clocks(key, data, clock)).seconds

    figures = Figures(
        delivery=lambda: observe_delivery(intake.events, shipper, metrics),
        facts=poller.facts if poller else lambda _: HeadFacts(),
        left_by=lambda session, node_id: observe_left_by(session, node_id, intake.sessions, intake.events, shipper),
        compare_clocks=compare_clocks,
    )
    if sampler is not None:
        figures = replace(figures, observe_losses=sampler.dropped_events, samples=sampler.tail)
    recorder = Recorder(make_identity(settings), intake.sessions, intake.bucket, figures, clock, metrics)
    return Collector(intake, recorder, shipper, poller, sampler)


def _event_settings(settings: CollectorSettings) -> EventSettings:
    spool = settings.spool
    return EventSettings(
        namespace=settings.cluster.namespace,
        cluster=settings.cluster.name,
        pod=_pod(settings),
        folder=spool.folder,
        port=settings.sink.port,
        hosts=settings.sink.hosts,
        spool_max_bytes=spool.max_bytes,
        segment_max_bytes=spool.seal_bytes,
        busy_seal_seconds=spool.seal_seconds,
        idle_seal_seconds=spool.idle_seal_seconds,
    )


def make_shipper(
    settings: CollectorSettings, sessions: LogSessions, bucket: LogBucket, clock: Clock, metrics: CollectorMetrics
) -> LogShipper:
    """What ships the log files of these sessions."""
    from raykeeper.collector.logs.settings import LogShipperSettings
    from raykeeper.collector.logs.shipper import LogShipper

    files = settings.log_files
    own = LogShipperSettings(
        # A capture goes into a store of its own: what another has of these files is no reason to leave them out.
        spool=None if settings.runs_once else settings.spool.folder,
        namespace=settings.cluster.namespace,
        cluster=settings.cluster.name,
        pod=_pod(settings),
        user_tick_seconds=files.user_seconds,
        component_tick_seconds=files.component_seconds,
        quiet_component_tick_seconds=max(files.component_seconds, LogShipperSettings.quiet_component_tick_seconds),
        deleted_bytes_max=files.max_held_bytes,
    )
    return LogShipper(own, sessions, bucket, clock, metrics)


def make_dashboard(settings: CollectorSettings, limits: Limits | None = None) -> Dashboard:
    """The head's dashboard, with the token it may ask for."""
    from raykeeper.ray.credentials import ray_credentials
    from raykeeper.ray.dashboard import Dashboard

    auth = settings.head.auth
    return Dashboard(settings.head.dashboard_address, ray_credentials(auth.token, auth.token_file), limits)


def _poller(settings: CollectorSettings, intake: Intake, clock: Clock, metrics: CollectorMetrics) -> HeadPoller:
    from raykeeper.collector.poll.poller import HeadPoller, PollSettings

    head, cluster = settings.head, settings.cluster
    own = PollSettings(cluster.namespace, cluster.name, head.poll_seconds, head.additional_endpoints)
    return HeadPoller(make_dashboard(settings), intake.sessions, intake.bucket, own, clock, metrics)


def _sampler(settings: CollectorSettings, intake: Intake, clock: Clock, metrics: CollectorMetrics) -> Sampler:
    from raykeeper.collector.samples.sampler import Sampler, SamplerSettings

    cluster, folder = settings.cluster, settings.spool.folder / "samples"
    phase = sum(_pod(settings).encode()) % 40 / 10  # pods of one machine do not all look at the same moment
    own = SamplerSettings(cluster.namespace, cluster.name, folder, settings.node.ray_tmp_root, phase)
    return Sampler(own, intake.sessions, intake.bucket, clock, metrics)


def make_identity(settings: CollectorSettings) -> Identity:
    """Whose records these are."""
    from raykeeper.collector.identity import Identity

    return Identity(
        namespace=settings.cluster.namespace,
        cluster=settings.cluster.name,
        role=settings.node.role,
        cluster_uid=settings.cluster.uid,
        owner_kind=settings.cluster.owner_kind or "",
        owner_name=settings.cluster.owner_name,
        pod=settings.node.pod_name,
        pod_ip=settings.node.pod_ip,
        hostname=socket.gethostname(),
        collector_version=metadata.version("raykeeper"),
    )


def _pod(settings: CollectorSettings) -> str:
    return settings.node.pod_name or socket.gethostname()
