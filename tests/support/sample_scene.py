"""Sessions with resource samples in a store of this test's own, and the means to ask for their curves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bed.waiting import PATIENCE_SECONDS
from raykeeper.history.entities.nodes import POLLED
from raykeeper.history.ingest.session import PolledHistory
from raykeeper.history.query.context import SessionContext
from raykeeper.history.samples.store import SampleStore
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.history.store.session_state import SessionState, State
from raykeeper.layout.keys import PolledKey, SamplesKey
from raykeeper.layout.records import NodeRecord, PolledAnswer
from raykeeper.layout.samples import GpuSample, Sample, encode_block, to_block
from raykeeper.storage.store import ObjectStore
from raykeeper.times import NS, from_ns
from support.clocks import ManualClock
from support.history_scene import local_store
from support.ingest_scene import HEAD, SESSION, START_NS, Event
from support.overview_scene import asked_about

START = START_NS // NS
"""The beginning of the session, and of an hour."""
MIB = 1 << 20
Values = Callable[[int], Mapping[str, Any]]


def rows(start: int, number: int, values: Values | Mapping[str, Any]) -> list[Sample]:
    """So many rows from a moment on; what is in them may depend on the number of the row."""
    known = values if callable(values) else lambda _row: values
    return [Sample(at=start + 10 * row, **known(row)) for row in range(number)]


def gpu(index: int, used: int, memory: int = 1000, name: str = "NVIDIA A100") -> GpuSample:
    return GpuSample(index=index, name=name, used=used, memory=memory, memory_total=40_000)


@dataclass
class SampleScene:
    """One session, a history server's parts around it, and a clock."""

    context: SessionContext
    store: ObjectStore
    samples: SampleStore
    clock: ManualClock
    cache: LocalCache

    async def put(self, node_id: str, samples: Sequence[Sample]) -> str:
        """Store a block as a collector does; its key."""
        block = to_block(samples)
        key = SamplesKey(SESSION, node_id, block.start * NS, block.rows).key
        await self.store.put(key, encode_block(block))
        return key

    def beat(self, node_id: str, samples: Sequence[Sample] = (), *, data: bytes | None = None) -> None:
        """Let a heartbeat carry rows along."""
        carried = encode_block(to_block(samples)) if samples else data or b""
        now = self.clock.now()
        record = NodeRecord(
            node_id=node_id,
            role="worker",
            started_at=from_ns(START_NS),
            beat_at=now,
            interval_seconds=30,
            samples=carried,
        )
        others = tuple(node for node in self.context.session.nodes if node.node_id != node_id)
        self.change(nodes=(*others, record))

    def change(self, **facts: Any) -> None:
        """Let other things be known of the session."""
        self.context = replace(self.context, session=replace(self.context.session, **facts))

    def polled(self, answers: Iterable[tuple[int, object]]) -> None:
        """Let the head have answered so about its nodes, at these seconds after the start."""
        known = {
            PolledKey(SESSION, POLLED, (START + seconds) * 1000): PolledAnswer(
                path=POLLED,
                polled_at=from_ns((START + seconds) * NS),
                status=200,
                body=msgspec.Raw(msgspec.json.encode({"data": {"summary": summary}})),
            )
            for seconds, summary in answers
        }

        async def keys_of(path: str) -> tuple[PolledKey, ...]:
            return tuple(sorted(known)) if path == POLLED else ()

        async def read(key: PolledKey) -> PolledAnswer | None:
            return known.get(key)

        self.change(history=PolledHistory(keys_of, read))

    def restart(self) -> None:
        """Another server on the same store, with the same disk."""
        self.samples = SampleStore(self.store, self.cache, self.clock, PATIENCE_SECONDS)
        self.context = replace(self.context, samples=self.samples)


@asynccontextmanager
async def a_sample_scene(
    folder: Path,
    events: Iterable[Event] = (),
    *,
    jobs: Sequence[Mapping[str, Any]] = (),
    seconds: float = 3600,
    is_over: bool = True,
) -> AsyncIterator[SampleScene]:
    """A session of these events that lasted so long, with a head."""
    end = from_ns(START_NS + int(seconds * NS))
    async with asked_about(folder, list(events), jobs=jobs, as_of=end) as context:
        clock = ManualClock(now=datetime.fromtimestamp(end.timestamp() + (7200 if is_over else 0), UTC))
        store, cache = local_store(folder / "store"), LocalCache(folder, 1 << 30)
        samples = SampleStore(store, cache, clock, PATIENCE_SECONDS)
        state = SessionState(State.ENDED, is_final=True, ended_at=end) if is_over else SessionState(State.RUNNING)
        scene = SampleScene(replace(context, samples=samples), store, samples, clock, cache)
        scene.change(state=state)
        scene.beat(HEAD)
        try:
            yield scene
        finally:
            await scene.samples.close()
            cache.close()
