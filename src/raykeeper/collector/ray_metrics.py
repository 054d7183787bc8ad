"""Ray's metrics of one node: at which port its agent shows them, and those few lines of them that are of use here.

The agent shares its pod with user code, so whatever answers at that port is believed in nothing: neither in how much it
says, nor how fast, nor in its numbers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from raykeeper.collector.rayfolder import Folder, ray_session
from raykeeper.errors import RaykeeperError
from raykeeper.logs import Log
from raykeeper.ray.dashboard import Dashboard, Limits

NAMES = (
    b"aggregator_agent_queue_dropped_events_total",
    b"node_cpu_count",
    b"node_cpu_utilization",
    b"node_gpus_utilization",
    b"node_gram_available",
    b"node_gram_used",
    b"node_mem_total",
    b"node_mem_used",
    rb'resources(?=\{[^\n]{0,4096}\bName="(?:CPU|GPU|object_store_memory)")',
)
"""Of the metrics that are read, without Ray's prefix; patterns. Of resources there are many with placement groups."""
DROPPED_EVENTS = "aggregator_agent_queue_dropped_events_total"
DEFAULT_PORT = 8080  # where KubeRay has every Ray node show its metrics
ANSWER_SECONDS = 5.0
"""For all of an answer: Ray needs a tenth of a second, on a starved machine more."""
MAX_ANSWER_BYTES = 32 << 20
"""A node's metrics are about 0.4 MB, more with many workers. What is behind this is not read."""
MAX_LINES = 4096
"""That are kept of an answer; a node with 64 GPUs has some 300."""
MAX_LINE_BYTES = 4096
"""Ray's have 300; a longer one is passed over."""
_PORT_BYTES, _PORTS_BYTES = 16, 1 << 20
"""Read of the files that say the port; Ray's have 5 and about 200 for each raylet."""
_LAST_PORT = 65535
_WANTED = re.compile(rb"\nray_((?:" + b"|".join(NAMES) + rb")[{ ][^\n]{1,%d})(?=\n)" % MAX_LINE_BYTES)
_LINE = re.compile(rb"([a-z_]+)(?:\{(.*)\})?[ \t]+([^ \t]{1,40})(?:[ \t]+-?\d{1,20})?\s*", re.DOTALL)
_LABEL = re.compile(rb'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

log = Log("raykeeper.collector.records")


@dataclass(frozen=True)
class Reading:
    """One number that Ray shows."""

    name: str
    """Without Ray's prefix."""
    labels: dict[str, str]
    value: float
    """Any float: also what is no number."""


@dataclass(frozen=True)
class RayMetrics:
    """What a node said about itself."""

    readings: tuple[Reading, ...]
    size: int
    """Bytes of the whole answer, of which few are of use."""

    @property
    def dropped_events(self) -> int:
        """The sum over all types of events. Ray shows the counter from the first loss on: none means nothing lost."""
        values = (reading.value for reading in self.readings if reading.name == DROPPED_EVENTS)
        return sum(round(value) for value in values if 0 <= value < 1e15)


class WantedLines:
    """Finds the lines of use in an answer that comes in pieces; memory for one piece and for what it keeps."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self._rest = b"\n"
        self._is_in_long_line = False

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        text = self._rest + piece
        end = text.rfind(b"\n")
        if self._is_in_long_line:
            begin = text.find(b"\n")
            self._is_in_long_line = begin < 0
            text, end = text[max(begin, 0) :], end - max(begin, 0)
        if not self._is_in_long_line and end > 0 and len(self.lines) < MAX_LINES:
            found = (match[1] for match in _WANTED.finditer(text, 0, end + 1))
            self.lines += [line for line, _ in zip(found, range(MAX_LINES - len(self.lines)), strict=False)]
        self._rest = text[max(end, 0) :]
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._is_in_long_line = b"", True


def parse_metrics(wanted: WantedLines) -> RayMetrics:
    """The numbers in those lines; what is none is left out. Pure."""
    readings = (parse_line(line) for line in wanted.lines)
    return RayMetrics(tuple(reading for reading in readings if reading), wanted.size)


def parse_line(line: bytes) -> Reading | None:
    """One line of Prometheus' text, without Ray's prefix; None for what is none. Pure."""
    found = _LINE.fullmatch(line)
    if not found:
        return None
    try:
        value = float(found[3])
    except ValueError:
        return None
    return Reading(found[1].decode(), dict(map(_label, _LABEL.finditer(found[2] or b""))), value)


async def observe_metrics(session: Path, node_id: str) -> RayMetrics | None:
    """What the node's agent shows now; None if it shows nothing, or not in time."""
    port = await asyncio.to_thread(metrics_port, session, node_id)
    limits = Limits(connect_seconds=1.0, answer_seconds=ANSWER_SECONDS)
    wanted = WantedLines()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            pieces = Dashboard(f"http://127.0.0.1:{port}", limits=limits).stream("/metrics")
            async for piece in pieces:
                wanted.feed(piece)
                await asyncio.sleep(0)  # what has arrived is read without a pause, and others have their turn
                if wanted.size > MAX_ANSWER_BYTES:
                    await pieces.aclose()
                    break
    except (RaykeeperError, TimeoutError) as exc:
        log.debug("ray's metrics not read", node_id=node_id, cause=str(exc) or "no time left")
        return None
    wanted.feed(b"\n")  # the last line may lack its end
    return parse_metrics(wanted)


async def observe_dropped_events(session: Path, node_id: str) -> int | None:
    """What the node's agent has dropped since it began; None if it does not tell."""
    metrics = await observe_metrics(session, node_id)
    return metrics.dropped_events if metrics else None


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


def _label(found: re.Match[bytes]) -> tuple[str, str]:
    text = found[2].decode(errors="replace")
    return found[1].decode(), _ESCAPED.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], text)
