"""Reads from Ray's metrics how many events Ray dropped before they reached us."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec

from raykeeper.collector.rayfolder import Folder, ray_session
from raykeeper.errors import Unavailable
from raykeeper.logs import Log
from raykeeper.ray.dashboard import Dashboard, Limits
from raykeeper.ray.errors import OversizedAnswer, RayRefused

METRIC = b"ray_aggregator_agent_queue_dropped_events_total"
DEFAULT_PORT = 8080  # where KubeRay has every Ray node show its metrics
LIMITS = Limits(connect_seconds=1.0, answer_seconds=5.0, body_bytes=16 << 20)
"""A node's metrics are about 0.4 MB, more with many actors."""
_PORT_BYTES, _PORTS_BYTES = 16, 1 << 20
"""Read of the files that say the port; Ray's have 5 and about 200 for each raylet."""
_LAST_PORT = 65535
_LINE = re.compile(rb"^" + METRIC + rb"(?:\{[^\n]*\})?[ \t]+([0-9.eE+]+)", re.MULTILINE)

log = Log("raykeeper.collector.records")


async def observe_dropped_events(session: Path, node_id: str) -> int | None:
    """What the node's agent has dropped since it began; None if it does not tell."""
    port = await asyncio.to_thread(metrics_port, session, node_id)
    dashboard = Dashboard(f"http://127.0.0.1:{port}", limits=LIMITS)
    try:
        answer = await dashboard.get("/metrics")
    except (Unavailable, RayRefused, OversizedAnswer) as exc:
        log.debug("ray's metrics not read", node_id=node_id, cause=str(exc))
        return None
    return parse_dropped_events(answer.body) if answer.is_ok else None


def parse_dropped_events(metrics: bytes) -> int:
    """The sum over all types of events. Ray shows the counter from the first loss on, so none means nothing lost."""
    return sum(round(float(found[1])) for found in _LINE.finditer(metrics))


def metrics_port(session: Path, node_id: str) -> int:
    """The port at which that node shows its metrics, by the files that Ray left in the session's folder."""
    try:
        with ray_session(session) as folder:
            return _own_port(folder, node_id) or _newest_port(folder) or DEFAULT_PORT
    except OSError:
        return DEFAULT_PORT


def _own_port(folder: Folder, node_id: str) -> int | None:
    try:
        return _port(int(folder.read(f"metrics_export_port_{node_id}", _PORT_BYTES).data))
    except (OSError, ValueError):
        return None


def _newest_port(folder: Folder) -> int | None:
    """From the one file that Ray 2.52 and 2.53 write instead: by address and socket, the newest raylet last."""
    try:
        text = folder.read("ports_by_node.json", _PORTS_BYTES).data
        ports = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    except (OSError, ValueError, RecursionError):
        return None
    said = (known["metrics_export_port"] for known in reversed(ports.values()) if "metrics_export_port" in known)
    return _port(next(said, 0))


def _port(number: int) -> int | None:
    return number if 0 < number <= _LAST_PORT else None
