"""What the head's dashboard said about all machines, once a minute: for sessions, and nodes, without samples."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from raykeeper.history.curves.model import Curve, CurveName, Curves, Numbers
from raykeeper.history.curves.scope import Scope
from raykeeper.history.entities.nodes import POLLED
from raykeeper.history.query.context import SessionContext
from raykeeper.layout.keys import PolledKey
from raykeeper.layout.records import PolledAnswer
from raykeeper.times import NS, to_ns

ANSWERS_LIMIT = 60
"""That are read, evenly over the time."""
ANSWERS_BYTES = 64 << 20
"""Of them together; those of a thousand nodes have 16 MB each, so that only a few are read."""
POLL_SECONDS = 60
_AT_ONCE = 4
_MIB = 1 << 20
_CARRIED = 2.5
"""For so many times the distance of two answers the last one still counts."""

NO_SAMPLES = (
    "There are no resource samples: the session was recorded by a collector that takes none, by KubeRay's, "
    "or with --enable-resource-collector=false."
)
METRICS_OFF = (
    "Ray's agents showed no metrics to the collectors, so CPU, memory and GPUs are from the head's statistics, "
    "once a minute."
)

Amounts = Mapping[str, float]


class _Gpu(msgspec.Struct):
    utilization: float | None = msgspec.field(default=None, name="utilizationGpu")
    memory_used: float | None = msgspec.field(default=None, name="memoryUsed")
    memory_total: float | None = msgspec.field(default=None, name="memoryTotal")


class _Raylet(msgspec.Struct):
    node_id: str = msgspec.field(default="", name="nodeId")
    store_used: float | None = msgspec.field(default=None, name="objectStoreUsedMemory")
    store_available: float | None = msgspec.field(default=None, name="objectStoreAvailableMemory")


class _Machine(msgspec.Struct):
    cpu: float | None = None
    """Percent of all of them."""
    cpus: tuple[int, int] | None = None
    """Logical and physical."""
    mem: list[float] | None = None
    """Total, available, percent, used."""
    gpus: list[_Gpu] | None = None
    raylet: _Raylet = msgspec.field(default_factory=_Raylet)


class _Data(msgspec.Struct):
    summary: list[_Machine]


class _Answer(msgspec.Struct):
    data: _Data


@dataclass(frozen=True)
class PolledSample:
    """All machines that were asked for at one moment, added up."""

    at_ns: int
    nodes: int
    used: Amounts = field(default_factory=dict)
    """By the name of the curve, in its unit."""
    total: Amounts = field(default_factory=dict)


@dataclass(frozen=True)
class PolledCurves:
    curves: tuple[Curve, ...]
    nodes: tuple[int, ...]
    every_seconds: int
    """Between two answers, on average."""
    notes: tuple[str, ...]


async def polled_samples(context: SessionContext, scope: Scope) -> tuple[list[PolledSample], int]:
    """What was measured in a scope, oldest first, and how many answers there are that may tell more."""
    session = context.session
    keys = [key for key in await session.polled_versions(POLLED) if _is_within(key, scope)]
    wanted = None if scope.node_ids is None else frozenset(scope.node_ids)
    samples: list[PolledSample] = []
    left, chosen = ANSWERS_BYTES, alternating(spread(keys, ANSWERS_LIMIT))
    while chosen and left > 0:
        some, chosen = chosen[:_AT_ONCE], chosen[_AT_ONCE:]
        answers = [answer for answer in await asyncio.gather(*map(session.history.read, some)) if answer]
        left -= sum(len(bytes(answer.body)) for answer in answers)
        samples += await asyncio.to_thread(_parsed, answers, wanted)
    return sorted(samples, key=lambda sample: sample.at_ns), len(keys)


def _parsed(answers: Sequence[PolledAnswer], wanted: frozenset[str] | None) -> list[PolledSample]:
    return [sample for answer in answers if (sample := parse_polled(answer, wanted))]


async def polled_curves(context: SessionContext, scope: Scope, shape: Curves) -> PolledCurves | None:
    """Curves in the same parts as `shape`; None where the head was never asked."""
    samples, answers = await polled_samples(context, scope)
    if not samples:
        return None
    every = _distance_seconds(samples)
    by_part = _in_parts(samples, shape, max(every * _CARRIED, shape.width_seconds))
    names: tuple[tuple[CurveName, str], ...] = (
        ("cpu", "CPUs"),
        ("memory", "bytes"),
        ("gpu", "GPUs"),
        ("gpu_memory", "bytes"),
        ("object_store", "bytes"),
    )
    curves = [_curve(name, unit, by_part) for name, unit in names]
    known = tuple(curve for curve in curves if any(number is not None for number in curve.mean))
    told = (f"{len(samples)} of {answers} answers were read.",) if len(samples) < answers else ()
    return PolledCurves(known, tuple(part.nodes if part else 0 for part in by_part), round(every), told)


def parse_polled(answer: PolledAnswer, wanted: frozenset[str] | None = None) -> PolledSample | None:
    """The machines of these nodes, or all; None for an answer that measures nothing. Pure."""
    if answer.status != 200:
        return None
    try:
        machines = msgspec.json.decode(answer.body, type=_Answer).data.summary
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    measured = [machine for machine in machines if wanted is None or machine.raylet.node_id in wanted]
    used: dict[str, float] = {}
    total: dict[str, float] = {}
    nodes = 0
    for machine in measured:
        nodes += machine.cpu is not None
        for name, amount, of_how_much in _figures(machine):
            used[name] = used.get(name, 0.0) + amount
            total[name] = total.get(name, 0.0) + of_how_much
    return PolledSample(to_ns(answer.polled_at), nodes, used, total) if used else None


def _figures(machine: _Machine) -> list[tuple[str, float, float]]:
    """Name of a curve, what is used of it, and what there is."""
    found: list[tuple[str, float, float]] = []
    if machine.cpu is not None and machine.cpus:
        found.append(("cpu", machine.cpu / 100 * machine.cpus[0], machine.cpus[0]))
    if machine.mem and len(machine.mem) > 3:
        found.append(("memory", machine.mem[3], machine.mem[0]))
    for gpu in machine.gpus or ():
        found.append(("gpu", (gpu.utilization or 0.0) / 100, 1.0))
        found.append(("gpu_memory", (gpu.memory_used or 0.0) * _MIB, (gpu.memory_total or 0.0) * _MIB))
    store = machine.raylet
    if store.store_used is not None and store.store_available is not None:
        found.append(("object_store", store.store_used, store.store_used + store.store_available))
    return found


def spread(keys: Sequence[PolledKey], limit: int) -> list[PolledKey]:
    """At most so many of them, evenly over all, with the first and the last."""
    if len(keys) <= limit:
        return list(keys)
    return [keys[round(place * (len(keys) - 1) / (limit - 1))] for place in range(limit)]


def alternating(keys: Sequence[PolledKey]) -> list[PolledKey]:
    """The same keys so that those read first are spread over the time: not all may be read."""
    ordered: list[PolledKey] = []
    seen: set[int] = set()
    step = max(1, len(keys) - 1)
    while len(ordered) < len(keys):
        for place in [*range(0, len(keys), step), len(keys) - 1]:
            if place not in seen:
                seen.add(place)
                ordered.append(keys[place])
        step = max(1, step // 2)
    return ordered


def _is_within(key: PolledKey, scope: Scope) -> bool:
    return scope.begin - POLL_SECONDS <= key.polled_ms // 1000 < scope.end + POLL_SECONDS


def _distance_seconds(samples: Sequence[PolledSample]) -> float:
    if len(samples) < 2:
        return POLL_SECONDS
    return max(1.0, (samples[-1].at_ns - samples[0].at_ns) / NS / (len(samples) - 1))


def _in_parts(samples: Sequence[PolledSample], shape: Curves, carried_seconds: float) -> list[PolledSample | None]:
    """The sample that counts in each part: the last one of it, else the one before it, if that is not too old."""
    found: list[PolledSample | None] = []
    place = -1
    for begin in shape.at:
        end_ns = (begin + shape.width_seconds) * NS
        while place + 1 < len(samples) and samples[place + 1].at_ns < end_ns:
            place += 1
        is_young = place >= 0 and begin - samples[place].at_ns / NS <= carried_seconds
        found.append(samples[place] if is_young else None)
    return found


def _curve(name: CurveName, unit: str, by_part: Sequence[PolledSample | None]) -> Curve:
    used: Numbers = tuple(sample.used.get(name) if sample else None for sample in by_part)
    total: Numbers = tuple(sample.total.get(name) if sample else None for sample in by_part)
    return Curve(name, unit, used, used, used, total, None)
