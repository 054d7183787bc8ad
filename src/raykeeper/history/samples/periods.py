"""The time in hours and days, and what the store has of each: blocks, and rows that only heartbeats carry along."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from raykeeper.history.ingest.session import Session
from raykeeper.history.samples.table import TABLES_VERSION
from raykeeper.layout.keys import SamplesKey, SessionId, hour_of, parse_sealed_key, sample_tables_prefix
from raykeeper.layout.records import NodeRecord
from raykeeper.layout.samples import (
    HOUR_SECONDS,
    STEP_SECONDS,
    DamagedSamples,
    SampleBlock,
    decode_block,
    hour_start,
)
from raykeeper.storage.store import ObjectStore
from raykeeper.times import NS

MAX_BLOCKS = 100_000
"""Of one period; further ones are not read, and counted. An hour of ten thousand nodes with many GPUs has forty
thousand."""
MAX_PERIOD_BYTES = 64 << 20
"""Of all blocks of a period; likewise. That hour has 40 MB."""
MAX_BLOCK_BYTES = 1 << 20
"""A larger one is no block of ours; those of 64 GPUs have 60 KB."""
DAILY_NODES = 32
"""Of sessions with so many nodes or fewer there are tables by the day: 2,000 blocks, or three seconds."""
_OVER_SECONDS = 600
"""After its end, until a period counts as over: nodes have sent their blocks, unless the bucket was away."""
_LATE_SECONDS = 120
"""A node whose newest row is so much older than another's does not send any more."""
_DAY_SECONDS = 24 * HOUR_SECONDS


@dataclass(frozen=True, order=True)
class Period:
    """One hour, or one day."""

    begin: int
    """Seconds since 1970."""
    seconds: int = HOUR_SECONDS

    @property
    def end(self) -> int:
        return self.begin + self.seconds

    @property
    def name(self) -> str:
        """As keys spell it: those of a day's hours begin with the day."""
        hour = hour_of(self.begin * NS)
        return hour if self.seconds == HOUR_SECONDS else hour.partition("T")[0]

    def is_over(self, now: float) -> bool:
        return now > self.end + _OVER_SECONDS

    def holds(self, moment: int) -> bool:
        return self.begin <= moment < self.end


@dataclass(frozen=True)
class Tail:
    """Rows of one node that its heartbeat has."""

    node_id: str
    data: bytes
    block: SampleBlock

    @property
    def end(self) -> int:
        return self.block.start + STEP_SECONDS * self.block.rows


@dataclass(frozen=True)
class Tails:
    """What the heartbeats of a session carry along."""

    tails: tuple[Tail, ...] = ()
    damaged: int = 0
    """Those that cannot be read."""

    def within(self, period: Period) -> tuple[Tail, ...]:
        return tuple(tail for tail in self.tails if period.holds(tail.block.start))

    def hours(self) -> set[int]:
        return {hour_start(tail.block.start) for tail in self.tails}


@dataclass(frozen=True)
class PeriodInputs:
    """What the tables of a period are made of."""

    session: SessionId
    period: Period
    blocks: Mapping[str, int]
    """Size by key."""
    tails: tuple[Tail, ...]
    ends: Mapping[str, int]
    """By node, when its newest row ends."""
    left_out: int

    @property
    def tables_prefix(self) -> str:
        return f"{sample_tables_prefix(self.session)}{self.period.name}/"

    def digest(self) -> str:
        """The same for the same blocks, whoever lists them."""
        parts = [TABLES_VERSION, str(self.left_out), *(f"{key} {size}" for key, size in sorted(self.blocks.items()))]
        parts += sorted(f"{tail.node_id} {hashlib.sha256(tail.data).hexdigest()}" for tail in self.tails)
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


async def list_inputs(store: ObjectStore, session: SessionId, period: Period, tails: Sequence[Tail]) -> PeriodInputs:
    """What there is of a period now."""
    found: dict[str, int] = {}
    sealed: dict[str, int] = {}
    left_out, room = 0, MAX_PERIOD_BYTES
    async for stat in store.list(f"{SamplesKey.prefix(session)}{period.name}"):
        facts = parse_sealed_key(stat.key)
        if not isinstance(facts, SamplesKey):
            continue
        if len(found) >= MAX_BLOCKS or stat.size > room:
            left_out += 1
            continue
        found[stat.key] = stat.size
        room -= stat.size
        end = facts.sealed_ns // NS + STEP_SECONDS * facts.sequence
        sealed[facts.node_id] = max(end, sealed.get(facts.node_id, 0))
    # A heartbeat may be older than the block that its rows went into.
    unsealed = tuple(tail for tail in tails if tail.end > sealed.get(tail.node_id, 0))
    ends = sealed | {tail.node_id: tail.end for tail in unsealed}
    return PeriodInputs(session, period, found, unsealed, ends, left_out)


def read_tails(nodes: Iterable[NodeRecord]) -> Tails:
    """What heartbeats carry along. Blocks for a millisecond in twenty nodes; for a thread."""
    tails, damaged = list[Tail](), 0
    for node in nodes:
        if not node.samples:
            continue
        try:
            tails.append(Tail(node.node_id, node.samples, decode_block(node.samples[: MAX_BLOCK_BYTES + 1])))
        except DamagedSamples:
            damaged += 1
    return Tails(tuple(tails), damaged)


def periods_of(session: Session, hours: Sequence[int], now: float) -> list[Period]:
    """Those whose tables hold the samples of these hours. Small tables cost by their number: there are few of them."""
    found = set[Period]()
    for start in hours:
        day = Period(start - start % _DAY_SECONDS, _DAY_SECONDS)
        is_by_day = len(session.nodes) <= DAILY_NODES and (session.is_final or day.is_over(now))
        found.add(day if is_by_day else Period(start))
    return sorted(found)


def complete_until(ends: Mapping[str, int]) -> int | None:
    """Until when all nodes that live have told, by the end of each one's newest row; workers tell every half minute."""
    newest = max(ends.values(), default=0)
    return min((end for end in ends.values() if end > newest - _LATE_SECONDS), default=None)


def hour_of_folder(name: str) -> int | None:
    """Where the hour begins that a folder is named after; None for another name."""
    try:
        start = int(datetime.strptime(name, "%Y-%m-%dT%H").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return start if start > 0 and hour_of(start * NS) == name else None
