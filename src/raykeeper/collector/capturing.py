"""`collector --once` as a program: real clients for a capture, its progress on standard error, its exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from raykeeper.clock import Clock, SystemClock
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.once import LIMITS, Capture, LocalLogs, Shipped
from raykeeper.collector.parts import find_store_settings, make_dashboard, make_identity, make_shipper
from raykeeper.collector.sessions import SessionOnDisk, SessionWatch
from raykeeper.collector.settings import CollectorSettings
from raykeeper.storage.opening import open_store
from raykeeper.storage.store import ObjectStore

LOCAL_LOGS_SECONDS = 3600.0
"""For the logs on this machine: nothing waits for the end of a capture but its user, who sees that it goes on."""


@dataclass(frozen=True)
class _Captured:
    """The one session whose logs are taken: what else lies in Ray's folder may be of other clusters."""

    only: tuple[SessionOnDisk, ...]

    def sessions(self) -> tuple[SessionOnDisk, ...]:
        return self.only

    def current_session(self) -> str | None:
        return self.only[0].name


async def capture_once(settings: CollectorSettings, environment: Mapping[str, str]) -> int:
    """Take what is left of a cluster; 0 if nothing is missing, 3 if something is.

    Raises what stops it: somebody waits for a capture, so a store that refuses is told at once instead of waited for.
    """
    clock, metrics = SystemClock(), CollectorMetrics(CollectorRegistry())
    store = open_store(find_store_settings(settings, environment))
    dashboard, identity = make_dashboard(settings, LIMITS), make_identity(settings)
    capture = Capture(dashboard, store, identity, clock, _say, settings.head.additional_endpoints)
    captured = await capture.take(_local_logs(settings, store, clock, metrics))
    for line in captured.report():
        _say(line)
    return captured.exit_code


def _local_logs(
    settings: CollectorSettings, store: ObjectStore, clock: Clock, metrics: CollectorMetrics
) -> LocalLogs | None:
    """The node whose session folder is on this machine, if one is."""
    sessions = SessionWatch(settings.node.ray_tmp_root, clock)
    sessions.poll()
    current = sessions.current_session()
    node_id = sessions.node_of(current) if current else None
    if node_id is None or not settings.log_files.is_on:
        return None

    only = tuple(session for session in sessions.sessions() if session.name == current)

    async def ship() -> Shipped:
        shipper = make_shipper(settings, _Captured(only), store, clock, metrics)
        try:
            missing = await shipper.flush(clock.steady() + LOCAL_LOGS_SECONDS)
            return Shipped(shipper.file_count, shipper.sent_bytes, missing)
        finally:
            await shipper.close()

    return LocalLogs(node_id, ship)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - progress for the person who waits
