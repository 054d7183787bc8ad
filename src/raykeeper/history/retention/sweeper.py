"""Sweeps a store: goes on with removals that are under way, finds out which sessions go, and hides those.

`raykeeper retention` sweeps once. The history server does it again and again, in one replica at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import msgspec

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.retention.claims import Claims
from raykeeper.history.retention.facts import Budget, Progress, SessionsKnown
from raykeeper.history.retention.holds import held_sessions
from raykeeper.history.retention.leftovers import Leftovers, LeftoversFound
from raykeeper.history.retention.metrics import RetentionMetrics
from raykeeper.history.retention.plan import Planner, Removal
from raykeeper.history.retention.removal import Done, Remover, Step, UnderWay, removals_under_way
from raykeeper.history.retention.usage import UsageCount, write_usage
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.compacted import parse_compacted_key
from raykeeper.layout.keys import SessionId, catalog_day_prefix
from raykeeper.layout.retention import (
    REMOVED_PREFIX,
    USAGE_KEY,
    RemovedRecord,
    SessionFacts,
    Usage,
    parse_session_mark,
)
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, StoreRefused
from raykeeper.storage.store import ObjectStat, ObjectStore

log = Log("raykeeper.history.retention")

MOST_UNDER_WAY = 5_000
"""Sessions that are hidden and not yet deleted, at any time; further ones wait for the next sweep."""
LEAP = timedelta(days=2)
"""Since the last sweep; beyond that a server does not trust the time."""
DOUBT = timedelta(days=1)
"""So long a server then waits, by a clock that cannot jump."""
LATE_FOR = timedelta(days=2)
"""So long after a removal each sweep looks whether something came late."""
_LATE_AT_ONCE = 5_000  # removed sessions at which one sweep looks for that
MOST_REFUSED = 1_000
"""Removals that the store may refuse in one sweep; if it refuses more, it refuses us."""
READ_A_SWEEP = 100
"""Sessions that nobody has read yet and that one sweep has read, to find out how they went."""
READ_SECONDS = 120.0
"""For one of them. It goes on being read behind that, and the next sweep knows more."""
_TRIED = 50_000
_AT_ONCE = 8
_LOOK_SECONDS = 30.0
"""Between two looks at removals that wait for their readers, and at whose turn it is."""
_AGAIN = Backoff(base=5.0, limit=600.0, jitter=0.3)
_REFUSED_SECONDS = 600.0


@dataclass
class SweepResult:
    """What one sweep did."""

    intended: int = 0
    removed: int = 0
    withdrawn: int = 0
    waiting: int = 0
    refused: int = 0
    """Sessions that are hidden, and of which the store lets nobody delete something."""
    bytes: int = 0
    late_objects: int = 0
    leftovers: LeftoversFound = field(default_factory=LeftoversFound)
    """Of clusters and RayJobs without a session."""
    left_for_next: int = 0
    """Sessions that go, and had to wait because too many are under way."""
    usage: Usage | None = None


@dataclass
class NamespacePlan:
    """What goes of one namespace."""

    sessions: int = 0
    bytes: int = 0
    objects: int = 0
    unmeasured: int = 0

    def add(self, removal: Removal) -> None:
        self.sessions += 1
        self.bytes += removal.facts.bytes or 0
        self.objects += removal.facts.objects
        self.unmeasured += removal.facts.bytes is None


@dataclass
class DryRun:
    """What a sweep would remove."""

    sessions: int = 0
    """That there are."""
    removals: int = 0
    namespaces: dict[str, NamespacePlan] = field(default_factory=dict)
    leftovers: LeftoversFound = field(default_factory=LeftoversFound)
    """Of clusters and RayJobs without a session, as many as one sweep looks at."""
    usage: Usage | None = None


ReadToEnd = Callable[[SessionId], Awaitable[object]]
"""Reads a session that is over to its end, which writes its summary."""


class Sweeper:
    """One sweeper of one store. KubeRay's layout is not seen by it: the store is the bare one."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        policy: RetentionPolicy,
        by: str,
        metrics: RetentionMetrics | None = None,
        store_clock: StoreClock | None = None,
        may_go_on: Callable[[], bool] = lambda: True,
        read_to_end: ReadToEnd | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._metrics = metrics
        self._read_to_end = read_to_end
        self._tried: Bounded[SessionId, bool] = Bounded(_TRIED)
        """Sessions that were read, or could not be."""
        self._store_clock = store_clock or StoreClock(store, clock)
        self._may_go_on = may_go_on
        self._known = SessionsKnown(store, Heartbeats(store, clock, self._store_clock), self._store_clock)
        self._remover = Remover(store, clock, self._store_clock, policy, by, may_go_on)
        self._leftovers = Leftovers(store, self._store_clock, policy, may_go_on)

    async def dry_run(self, each: Callable[[Removal], None], say: Progress = lambda _: None) -> DryRun:
        """Tell of each session that would go. Nothing is written but a probe of the store's clock."""
        found, held = DryRun(), await held_sessions(self._store)
        planner = Planner(self._policy, await self._store_clock.now(), held)
        hidden = {one.session for one in await removals_under_way(self._store)}
        count = UsageCount(held)
        async for _, sessions in self._known.by_day(Budget(), may_write=False, say=say):
            count.add(sessions)
            found.sessions += len(sessions)
            for facts in sessions:
                removal = planner.decide(facts)
                if removal is not None and not (hidden and facts.id in hidden):
                    found.removals += 1
                    found.namespaces.setdefault(facts.namespace, NamespacePlan()).add(removal)
                    each(removal)
        found.leftovers = await self._leftovers.sweep(may_write=False)
        found.usage = count.usage(self._clock.now())
        return found

    async def sweep(self, say: Progress = lambda _: None) -> SweepResult:
        """Once: go on with what is under way, hide what goes next, tend to records. Raises what the store raises."""
        result = SweepResult()
        await self.go_on(result, say)
        await self._intend(result, say)
        await self._tend_records(result)
        if self._may_go_on():
            result.leftovers = await self._leftovers.sweep(may_write=True)
        return result

    async def go_on(self, result: SweepResult, say: Progress = lambda _: None) -> None:
        """Go on with removals that are under way, as far as they can go now."""
        found = await removals_under_way(self._store)
        removed: dict[date, list[SessionId]] = {}
        for start in range(0, len(found), _AT_ONCE):
            if not self._may_go_on():
                result.waiting += len(found) - start
                break
            some = found[start : start + _AT_ONCE]
            for one, done in zip(some, await self._advance(some), strict=True):
                result.waiting += done.step is Step.WAITING
                result.refused += done.step is Step.REFUSED
                result.withdrawn += done.step is Step.WITHDRAWN
                if done.step is Step.REMOVED and done.day is not None:
                    result.removed += 1
                    result.bytes += done.bytes
                    removed.setdefault(done.day, []).append(one.session)
                    if self._metrics:
                        self._metrics.sessions.inc()
                        self._metrics.bytes.inc(done.bytes)
            if result.refused > MOST_REFUSED:
                raise StoreRefused(self._store.describe(), "", "it refuses to delete", "give the right to delete")
            say(f"removals: {result.removed:,} done, {result.waiting:,} wait, of {len(found):,}")
        for day, sessions in removed.items():
            await self._forget_copies(day, sessions)
        if self._metrics:
            self._metrics.under_way.set(result.waiting + result.refused)

    async def _advance(self, some: Sequence[UnderWay]) -> list[Done]:
        return await asyncio.gather(*map(self._advance_one, some))

    async def _advance_one(self, one: UnderWay) -> Done:
        """Trouble with one session is no other's: an object may be locked for years."""
        try:
            return await self._remover.advance(one)
        except StoreRefused as exc:
            log.warning("session cannot be removed", session=str(one.session), cause=str(exc))
            return Done(Step.REFUSED)

    async def _intend(self, result: SweepResult, say: Progress) -> None:
        """Hide the sessions that go, as many as may be under way."""
        held = await held_sessions(self._store)
        planner = Planner(self._policy, await self._store_clock.now(), held)
        count, budget, room = UsageCount(held), Budget(), MOST_UNDER_WAY - result.waiting - result.refused
        to_read = Budget(READ_A_SWEEP)
        async for day, found in self._known.by_day(budget, may_write=True, say=say):
            sessions = await self._with_outcomes(day, found, planner, to_read)
            count.add(sessions)
            going = [removal for facts in sessions if (removal := planner.decide(facts)) is not None]
            if not self._may_go_on():
                return
            taken, left = going[: max(0, room)], going[max(0, room) :]
            result.left_for_next += len(left)
            intended = 0
            for start in range(0, len(taken), _AT_ONCE):
                some = taken[start : start + _AT_ONCE]
                intended += sum(await asyncio.gather(*map(self._remover.intend, some)))
            room -= intended
            result.intended += intended
            result.waiting += intended
        result.usage = count.usage(self._clock.now())
        await write_usage(self._store, result.usage)
        if self._metrics:
            self._metrics.under_way.set(result.waiting + result.refused)
            self._metrics.show(result.usage)

    async def _with_outcomes(
        self, day: date, sessions: tuple[SessionFacts, ...], planner: Planner, budget: Budget
    ) -> tuple[SessionFacts, ...]:
        """The same sessions; of some that nobody has read, and whose outcome decides, it is found out now."""
        newer = dict[SessionId, SessionFacts]()
        for facts in sessions if self._read_to_end else ():
            if facts.id in self._tried or not planner.waits_for_outcome(facts):
                continue
            if not self._may_go_on() or not budget.take():
                break
            self._tried.put(facts.id, True)
            if outcome := await self._outcome(facts):
                newer[facts.id] = msgspec.structs.replace(facts, outcome=outcome)
        if newer:
            await self._known.learn(day, newer.values())
        return tuple(newer.get(facts.id, facts) for facts in sessions)

    async def _outcome(self, facts: SessionFacts) -> str:
        """How a session went that nobody has read; empty where that cannot be found out now."""
        try:
            if self._read_to_end and not await self._remover.outcome(facts):
                async with asyncio.timeout(READ_SECONDS):
                    await self._read_to_end(facts.id)
            return await self._remover.outcome(facts)
        except (RaykeeperError, TimeoutError) as exc:
            log.warning("outcome of a session is not known", session=str(facts.id), cause=str(exc) or "it takes long")
            return ""

    async def _tend_records(self, result: SweepResult) -> None:
        """Look for what came after a removal, and forget removals of long ago."""
        now, looked_at = await self._store_clock.now(), 0
        some = list[ObjectStat]()
        async for stat in self._store.list(REMOVED_PREFIX):
            age = now - stat.modified
            is_late = age < LATE_FOR and looked_at < _LATE_AT_ONCE
            looked_at += is_late
            if is_late or age >= self._policy.records:
                some.append(stat)
            if len(some) >= _AT_ONCE:
                await self._tend(some, now, result)
                some.clear()
            if not self._may_go_on():
                return
        await self._tend(some, now, result)

    async def _tend(self, some: Sequence[ObjectStat], now: datetime, result: SweepResult) -> None:
        async def tend(stat: ObjectStat) -> None:
            mark = parse_session_mark(stat.key)
            record = await self._record(stat.key)
            if mark is None or record is None:
                return
            result.late_objects += await self._remover.clean_late(mark.session, record)
            if now - stat.modified >= self._policy.records:
                await self._store.delete(stat.key)

        await asyncio.gather(*map(tend, some))

    async def _record(self, key: str) -> RemovedRecord | None:
        try:
            return await find_record(self._store, key, RemovedRecord)
        except DamagedRecord as exc:
            log.warning("record of a removal cannot be read", key=key, cause=str(exc))
            return None

    async def _forget_copies(self, day: date, removed: Sequence[SessionId]) -> None:
        """What is known of the day, and compacted entries, would else name what is gone."""
        await self._known.drop(day, removed)
        async for stat in self._store.list(f"{catalog_day_prefix(day)}compacted-"):
            if parse_compacted_key(stat.key):
                await self._store.delete(stat.key)


class SweepLoop:
    """The history server's sweeper: sweeps whenever it is its turn, until it is cancelled."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        policy: RetentionPolicy,
        name: str,
        metrics: RetentionMetrics,
        may_lead: Callable[[], bool] = lambda: True,
        read_to_end: ReadToEnd | None = None,
        store_clock: StoreClock | None = None,
    ) -> None:
        store_clock = store_clock or StoreClock(store, clock)
        self._store = store
        self._store_clock = store_clock
        self._clock = clock
        self._policy = policy
        self._metrics = metrics
        self._claims = Claims(store, clock, store_clock, name)
        self._may_lead = may_lead
        self._sweeper = Sweeper(
            store, clock, policy, name, metrics, store_clock, lambda: self._claims.is_ours and may_lead(), read_to_end
        )
        self._doubted_since: float | None = None
        self._next_at = float("-inf")
        self._failures = 0

    async def run(self) -> None:
        """Nothing that goes wrong here ends the program."""
        while True:
            seconds = await self.turn()
            await asyncio.sleep(seconds)

    async def turn(self) -> float:
        """One look, and a sweep if it is time; seconds until the next."""
        try:
            if not self._may_lead() or not await self._claims.take():
                self._metrics.hide()
                return _LOOK_SECONDS
            keeping = asyncio.create_task(self._claims.keep(), name="claims of the sweeper")
            try:
                return await self._sweep()
            finally:
                keeping.cancel()
        except StoreRefused as exc:
            log.warning("retention cannot write to the store", cause=str(exc))
            self._metrics.failures.inc()
            return _REFUSED_SECONDS
        except RaykeeperError as exc:
            log.warning("sweep ended early", cause=str(exc))
        except Exception:
            log.exception("sweep failed by a bug")
        self._metrics.failures.inc()
        self._failures += 1
        return _AGAIN.delay(self._failures)

    async def _is_in_doubt(self) -> bool:
        """Whether so much time has passed since the last sweep that a clock may have jumped, and not for a day yet.

        By a clock that is years ahead every session is too old. Whoever was away for long waits a day, too.
        """
        try:
            last = (await self._store.stat(USAGE_KEY)).modified
        except ObjectMissing:  # nobody ever swept here
            return False
        passed = await self._store_clock.now() - last
        if passed <= max(LEAP, 3 * self._policy.interval):
            self._doubted_since = None
            return False
        if self._doubted_since is None:
            self._doubted_since = self._clock.steady()
            words = "the last sweep was long ago, or a clock jumped: nothing more is removed for a day"
            log.warning(words, days=passed.days, cure="raykeeper retention --apply removes at once")
        return self._clock.steady() - self._doubted_since < DOUBT.total_seconds()

    async def _sweep(self) -> float:
        result = SweepResult()
        if self._clock.steady() < self._next_at or await self._is_in_doubt():
            await self._sweeper.go_on(result)
        else:
            result = await self._sweeper.sweep()
            if self._claims.is_ours:
                self._next_at = self._clock.steady() + self._policy.interval.total_seconds()
                self._metrics.last_success.set(datetime.now(UTC).timestamp())
            told = {
                "removed": result.removed,
                "hidden": result.intended,
                "late_objects": result.late_objects,
                "leftover_objects": result.leftovers.objects,
            }
            if any(told.values()):
                log.info("swept", **told, waiting=result.waiting, left=result.left_for_next)
        self._failures = 0
        if result.refused:
            self._metrics.failures.inc()
        if result.left_for_next and not result.waiting:
            self._next_at = float("-inf")
        wait = min(_LOOK_SECONDS, self._policy.interval.total_seconds())
        return min(wait, max(1.0, self._policy.reader_wait.total_seconds())) if result.waiting else wait
