"""Whatever happens to log files and to the collector, in any order: what reads back is what was written."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from collector.logs.shipping import Scene
from raykeeper.layout.logs import Slice, StoredLog, collect_logs, logs_of_packs, plan_read
from raykeeper.layout.packs import parse_index, read_frame
from support.conditions import until

NAMES = ("raylet.out", "serve/replica.log")
CALM_STEPS = 6
"""Between two outages or restarts: without some steps in which all works there is nothing to break."""
BACKUPS = 2
DELETED_MAX = 60_000


@dataclass(eq=False)
class Written:
    """All bytes that one generation of a file ever had, whatever became of them."""

    text: bytearray = field(default_factory=bytearray)
    is_append_only: bool = True
    has_grown: bool = False
    """Since the collector's start."""
    is_held: bool = False
    """A running collector saw it grow, and so can read it to its end even if it is deleted."""
    is_due: bool = False
    """It was deleted while it was held: all of it must be stored, or what is not must have been given up."""


class LogFiles(RuleBasedStateMachine):
    """A writer that does what loggers do, a collector that comes and goes, and a bucket that is up or down."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.scene = self.loop.run_until_complete(self._make_scene())
        self.alive: dict[str, Written] = {}
        self.all: list[Written] = []
        self.counter = 0
        self.shipping: asyncio.Task[None] | None = None
        self.calm_since = 0
        self.steps = 0

    async def _make_scene(self) -> Scene:
        return Scene(self.folder, deleted_bytes_max=DELETED_MAX, pack_bytes=20_000)

    def fresh(self, size: int) -> bytes:
        """Text that occurs nowhere else, as log lines with their times do not."""
        self.counter += 1
        return (b"%08d" % self.counter * (size // 8 + 1))[:size]

    def path(self, name: str) -> Path:
        return self.scene.logs / name

    @initialize()
    def begin(self) -> None:
        (self.scene.logs / "serve").mkdir()

    # --- the writer ---

    @rule(name=st.sampled_from(NAMES), size=st.integers(8, 40_000))
    def append(self, name: str, size: int) -> None:
        text = self.fresh(size)
        if name not in self.alive:
            self.alive[name] = Written()
            self.all.append(self.alive[name])
        with self.path(name).open("ab") as output:
            output.write(text)
        self.alive[name].text += text
        self.alive[name].has_grown = True

    @rule(name=st.sampled_from(NAMES))
    def rotate(self, name: str) -> None:
        if name not in self.alive:
            return
        self.delete(f"{name}.{BACKUPS}")
        for number in range(BACKUPS - 1, -1, -1):
            old = name if number == 0 else f"{name}.{number}"
            if old in self.alive:
                self.path(old).rename(self.path(f"{name}.{number + 1}"))
                self.alive[f"{name}.{number + 1}"] = self.alive.pop(old)

    @rule(name=st.sampled_from(NAMES), size=st.integers(0, 60_000))
    def truncate_and_write_on(self, name: str, size: int) -> None:
        if name not in self.alive:
            return
        self.path(name).write_bytes(text := self.fresh(size))
        self.alive[name] = Written(bytearray(text), is_append_only=False)
        self.all.append(self.alive[name])

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        if written := self.alive.pop(name, None):
            self.path(name).unlink()
            written.is_due = written.is_held and written.is_append_only

    # --- the collector ---

    @rule(after=st.sampled_from([5.0, 40.0]))
    def look(self, after: float) -> None:
        self.loop.run_until_complete(self.scene.look(after))
        self.hold()

    def hold(self) -> None:
        """Files of Ray's own are looked at less often, so for those nothing is promised."""
        for name, written in self.alive.items():
            written.is_held |= written.has_grown and not name.startswith("raylet")

    @rule(after=st.sampled_from([5.0, 100.0]))
    def tick(self, after: float) -> None:
        self.loop.run_until_complete(self._tick(after))

    async def _tick(self, after: float) -> None:
        await self.scene.look(after)
        self.hold()
        if self.shipping is None or self.shipping.done():
            self.shipping = asyncio.create_task(self.scene.shipper.ship())
        await until(lambda: self.scene.bucket.is_waited_for or (self.shipping and self.shipping.done()))

    def is_calm(self) -> bool:
        return self.steps - self.calm_since >= CALM_STEPS

    @rule()
    @precondition(is_calm)
    def bucket_goes_down(self) -> None:
        self.calm_since = self.steps
        self.scene.bucket.is_open.clear()

    @rule()
    @precondition(lambda self: not self.scene.bucket.is_open.is_set())
    def bucket_comes_back(self) -> None:
        self.scene.bucket.is_open.set()
        if self.shipping is not None:
            self.loop.run_until_complete(self.shipping)

    @rule(loses_positions=st.booleans())
    @precondition(is_calm)
    def collector_restarts(self, loses_positions: bool) -> None:
        self.calm_since = self.steps
        self.loop.run_until_complete(self._restart(loses_positions))

    async def _restart(self, loses_positions: bool) -> None:
        for written in self.all:
            written.has_grown = written.is_held = written.is_due = False
        if self.shipping is not None:
            self.shipping.cancel()
            await asyncio.wait([self.shipping])
            self.shipping = None
        if loses_positions and self.scene.settings.spool:
            shutil.rmtree(self.scene.settings.spool, ignore_errors=True)
        await self.scene.restart()

    # --- what must hold ---

    @invariant()
    def nothing_mixes(self) -> None:
        self.steps += 1
        if self.steps % 5:
            return  # all that is stored is read
        for stored, data in self.stored():
            self.origin(stored, data)

    def stored(self) -> list[tuple[StoredLog, dict[int, bytes]]]:
        """Every generation in the bucket with its bytes by offset; each frame is compared, also where they overlap."""
        packs = self.scene.bucket.of_node()
        logs, fetch = logs_of_packs(packs)
        return [
            (stored, {frame.offset: read_frame(frame, fetch(key, frame)) for key, frame in stored.frames})
            for stored in logs.values()
        ]

    def origin(self, stored: StoredLog, data: dict[int, bytes]) -> Written | None:
        """The one written file that holds all frames of a generation at their offsets."""
        parts = [(offset, text) for offset, text in data.items() if text]
        if not parts:
            return None
        fitting = [w for w in self.all if all(w.text[o : o + len(t)] == t for o, t in parts)]
        assert fitting, f"{stored.path} {stored.generation} is no file that was ever written"
        return fitting[0]

    def teardown(self) -> None:
        try:
            self.bucket_comes_back()
            for _ in range(3):
                self.tick(100.0)
            self.everything_that_remains_is_stored()
            self.everything_deleted_is_stored_or_given_up()
            self.what_is_missing_was_counted()
        finally:
            self.loop.run_until_complete(self.scene.shipper.close())
            self.loop.close()
            shutil.rmtree(self.folder)

    def everything_that_remains_is_stored(self) -> None:
        current = {stored.path: data for stored, data in self.newest()}
        for name, written in self.alive.items():
            assert current.get(name) == bytes(written.text), f"{name} does not read back"

    def everything_deleted_is_stored_or_given_up(self) -> None:
        logs, fetch = logs_of_packs(self.scene.bucket.of_node())
        complete = set[bytes]()
        for stored in logs.values():
            parts = plan_read(stored, 0, stored.size)
            text = bytearray(stored.size)
            for part in parts:
                if isinstance(part, Slice):
                    text[part.start : part.end] = read_frame(part.frame, fetch(part.pack, part.frame))[
                        part.start - part.frame.offset : part.end - part.frame.offset
                    ]
            holes = [part for part in parts if not isinstance(part, Slice)]
            if any("limit" not in hole.reason for hole in holes):
                continue  # only the limit of what is held excuses a loss
            complete |= {
                bytes(w.text)
                for w in self.all
                if len(w.text) == stored.size
                and all(w.text[p.start : p.end] == text[p.start : p.end] for p in parts if p not in holes)
            }
        for written in self.all:
            assert not written.is_due or bytes(written.text) in complete, "a deleted file was neither sent nor given up"

    def newest(self) -> list[tuple[StoredLog, bytes]]:
        bucket = self.scene.bucket
        return [(stored, bucket.read(stored)[0]) for stored in bucket.logs().values()]

    def what_is_missing_was_counted(self) -> None:
        """A generation has no hole that no gap explains."""
        logs = collect_logs((key, parse_index(pack)) for key, pack in self.scene.bucket.of_node().items())
        for stored in logs.values():
            for piece in plan_read(stored, 0, stored.size):
                assert isinstance(piece, Slice) or piece.reason, f"{stored.path} has a hole that nobody explained"


TestLogFiles = LogFiles.TestCase
TestLogFiles.settings = settings(max_examples=60, derandomize=True, stateful_step_count=40, deadline=None)
