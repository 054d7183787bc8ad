"""The end of a collector: Ray is heard until it is silent, then everything left is sent, then the end is recorded.

All of it fits into the grace period that the pod has. The last poll comes first, since the dashboard lives only as long
as Ray drains.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from raykeeper.clock import Clock
from raykeeper.collector.node_records import LeftBehind
from raykeeper.collector.parts import Collector
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.collector.records import NodePlace
from raykeeper.layout.records import MissingLog
from raykeeper.logs import Log

log = Log("raykeeper.collector.ending")

SILENT_SECONDS = 2.0
"""Without a batch, after the raylet is gone: the agent sends at least once a second while it has something."""
LISTEN_SHARE, POLL_SHARE = 0.5, 0.3
"""Of the grace period at most, for hearing Ray to its end and for the last poll."""
RECORD_SECONDS = 2.0
"""Kept for the end records: without them the node would look crashed."""
LOOK_SECONDS = 0.25
REASON = "terminated"


@dataclass(frozen=True)
class Deadlines:
    """Steady times until which each step of the end may take."""

    poll: float
    listen: float
    flush: float
    end: float


def plan_end(now: float, grace_seconds: float) -> Deadlines:
    """How the grace period is divided. Pure."""
    reserve = min(RECORD_SECONDS, grace_seconds / 4)
    return Deadlines(
        poll=now + grace_seconds * POLL_SHARE,
        listen=now + grace_seconds * LISTEN_SHARE,
        flush=now + grace_seconds - reserve,
        end=now + grace_seconds,
    )


def is_silent(now: float, last_post_at: float | None, raylet: bool | None) -> bool:
    """Whether Ray has nothing more to say: nobody is at the raylet's socket, and its last batch is a while ago. Pure.

    Where that cannot be told (None: no session, or a socket out of reach) only the time since the last batch counts.
    """
    return raylet is not True and (last_post_at is None or now - last_post_at >= SILENT_SECONDS)


def left_by_node(
    logs: Iterable[tuple[NodePlace, MissingLog]], event_bytes: int, sealed_bytes: Mapping[NodePlace, int]
) -> dict[NodePlace, LeftBehind]:
    """What each node's end record must own up to. Pure.

    `sealed_bytes` has all nodes of the pod, and what waits under the name of each. Events that wait without a name may
    be of any of them, so all own up to them: which session is the latest is said by a link that user code can write.
    """
    by_node: dict[NodePlace, list[MissingLog]] = defaultdict(list)
    for place, missing in logs:
        by_node[place].append(missing)
    left = {place: LeftBehind(missing_logs=tuple(missing)) for place, missing in by_node.items()}
    nameless = max(0, event_bytes - sum(sealed_bytes.values()))
    for place, sealed in sealed_bytes.items():
        if missing_bytes := sealed + nameless:
            left[place] = replace(left.get(place, LeftBehind()), missing_event_bytes=missing_bytes)
    return left


async def end_gracefully(collector: Collector, grace_seconds: float, clock: Clock) -> bool:
    """Send and record what is left; whether nothing was left behind. Assumes that the poller does not run any more."""
    deadlines = plan_end(clock.steady(), grace_seconds)
    asked_at = clock.now()
    at_once = asyncio.create_task(_send_at_once(collector))
    await asyncio.gather(_last_poll(collector, deadlines.poll), _hear_ray_out(collector, deadlines.listen, clock))
    event_bytes, logs, _ = await asyncio.gather(
        collector.intake.events.flush(deadlines.flush),
        _flush_logs(collector, deadlines.flush, at_once),
        _flush_samples(collector, deadlines.flush),
    )
    left = left_by_node(logs, event_bytes, _sealed_bytes(collector))
    is_recorded = await collector.recorder.end(REASON, left, deadlines.end, asked_at)
    missing_log_bytes = sum(missing.length for _, missing in logs)
    log.info(
        "collector ends",
        missing_event_bytes=event_bytes,
        missing_log_bytes=missing_log_bytes,
        is_recorded=is_recorded,
    )
    return is_recorded and not (event_bytes or missing_log_bytes)


async def _send_at_once(collector: Collector) -> None:
    """Send what is there now. An evicted pod has two seconds to end, whatever it was promised."""
    await collector.intake.events.seal_now()
    if collector.shipper is not None:
        await collector.shipper.send_all()


async def _last_poll(collector: Collector, deadline: float) -> None:
    if collector.poller is not None:
        await collector.poller.last_poll(deadline)


async def _hear_ray_out(collector: Collector, deadline: float, clock: Clock) -> None:
    events = collector.intake.events
    while clock.steady() < deadline:
        raylet = await asyncio.to_thread(_raylet, collector)
        if is_silent(clock.steady(), events.last_post_at, raylet):
            return
        await asyncio.sleep(LOOK_SECONDS)
    log.info("Ray still runs; what it says from now on is not collected")


async def _flush_logs(
    collector: Collector, deadline: float, at_once: asyncio.Task[None]
) -> list[tuple[NodePlace, MissingLog]]:
    """What could not be sent. The flush waits until `at_once` is done, whose order of files is the same."""
    if collector.shipper is not None:
        await collector.shipper.flush(deadline)
    at_once.cancel()
    await asyncio.gather(at_once, return_exceptions=True)
    if collector.shipper is None:
        return []
    return [((group.session, group.node_id), missing) for group, missing in await collector.shipper.missing_logs()]


async def _flush_samples(collector: Collector, deadline: float) -> None:
    if collector.sampler is not None:
        try:
            await collector.sampler.flush(deadline)
        except Exception:  # events, logs and the end itself are worth more
            log.exception("samples not sent at the end")


def _raylet(collector: Collector) -> bool | None:
    sessions = collector.intake.sessions
    current = sessions.current_session()
    paths = [session.path for session in sessions.sessions() if session.name == current]
    return raylet_listens(paths[0]) if paths else None


def _sealed_bytes(collector: Collector) -> dict[NodePlace, int]:
    events, sessions = collector.intake.events, collector.intake.sessions.sessions()
    places = [(session.name, node.node_id) for session in sessions for node in session.incarnations]
    return {place: events.sealed_of(*place) for place in places}
