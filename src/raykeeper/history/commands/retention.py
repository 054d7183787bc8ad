"""`raykeeper retention`, `hold` and `release`: what a store keeps, from the command line."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from raykeeper.clock import SystemClock
from raykeeper.errors import RaykeeperError
from raykeeper.history.commands.report_text import harmless
from raykeeper.history.retention.holds import hold, release
from raykeeper.history.retention.leftovers import LeftoversFound
from raykeeper.history.retention.plan import Removal, age_of
from raykeeper.history.retention.sweeper import DryRun, Sweeper, SweepResult
from raykeeper.history.retention_policy import RetentionPolicy, outcome_of, read_retention_policy
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.text import counted, size_text
from raykeeper.history.urls import parse_session_name
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

Say = Callable[[str], None]
SHOWN_ROWS = 1000
"""Sessions that a dry run lists one by one, unless all are asked for."""
_ROW = "{age:>6}  {outcome:<9}  {size:>9}  {rule:<16}  {session}  {reason}"
_LOOK_SECONDS = 5.0
_TOLD_SECONDS = 2.0  # between two lines of progress


@dataclass(frozen=True)
class RetentionOrder:
    """What the user asked for."""

    store_url: str
    policy: Path
    applies: bool = False
    shows_all: bool = False


def run_retention(order: RetentionOrder, say: Say, environment: Mapping[str, str] = os.environ) -> None:
    """Say what would go, or remove it. Raises RaykeeperError."""
    policy = read_retention_policy("--retention", order.policy)
    store = open_store(parse_store_url(order.store_url, environment))
    asyncio.run(_apply(store, policy, say) if order.applies else _dry_run(store, policy, say, order))


async def _dry_run(store: ObjectStore, policy: RetentionPolicy, say: Say, order: RetentionOrder) -> None:
    clock, shown = SystemClock(), 0
    sweeper = Sweeper(store, clock, policy, _user())

    def each(removal: Removal) -> None:
        nonlocal shown
        if shown == 0:
            say(_ROW.format(age="AGE", outcome="OUTCOME", size="SIZE", rule="RULE", session="SESSION", reason="WHY"))
        shown += 1
        if order.shows_all or shown <= SHOWN_ROWS:
            say(_row(removal, clock))

    found = await sweeper.dry_run(each, _Progress())
    if shown > SHOWN_ROWS and not order.shows_all:
        say(f"… and {counted(shown - SHOWN_ROWS, 'more session')}; --all lists them")
    _say_totals(found, say)
    if found.leftovers.objects:
        say(f"would also remove {_leftovers_in_words(found.leftovers)}")


def _row(removal: Removal, clock: SystemClock) -> str:
    facts = removal.facts
    hours = int(age_of(facts, clock.now()).total_seconds() // 3600)
    return _ROW.format(
        age=f"{hours // 24}d" if hours >= 48 else f"{hours}h",
        outcome=outcome_of(facts.outcome).value,
        size="?" if facts.bytes is None else size_text(facts.bytes),
        rule=harmless(removal.rule),
        session=harmless(str(facts.id)),
        reason=removal.reason,
    )


def _say_totals(found: DryRun, say: Say) -> None:
    if not found.removals:
        say(f"nothing would be removed of {counted(found.sessions, 'session')}")
        return
    say("")
    say(f"{'SESSIONS':>9}  {'SIZE':>9}  {'OBJECTS':>10}  NAMESPACE")
    for name, total in sorted(found.namespaces.items(), key=lambda item: -item[1].bytes):
        missing = f"  ({total.unmeasured:,} not measured)" if total.unmeasured else ""
        say(f"{total.sessions:>9,}  {size_text(total.bytes):>9}  {total.objects:>10,}  {harmless(name)}{missing}")
    total_bytes = sum(total.bytes for total in found.namespaces.values())
    say(f"would remove {found.removals:,} of {counted(found.sessions, 'session')}, {size_text(total_bytes)}")


async def _apply(store: ObjectStore, policy: RetentionPolicy, say: Say) -> None:
    """Sweep until nothing is left to do: hide, wait for readers, delete."""
    sweeper, progress, total = Sweeper(store, SystemClock(), policy, _user()), _Progress(), SweepResult()
    while True:
        result = await sweeper.sweep(progress)
        _add(total, result)
        if result.intended:
            say(f"hid {counted(result.intended, 'session')}; they are deleted in {policy.reader_wait}")
        while result.waiting:
            await asyncio.sleep(min(_LOOK_SECONDS, max(0.1, policy.reader_wait.total_seconds())))
            result = SweepResult(left_for_next=result.left_for_next)
            await sweeper.go_on(result, progress)
            _add(total, result)
        if not result.left_for_next:
            break
    say(f"removed {counted(total.removed, 'session')}, {size_text(total.bytes)}")
    if total.leftovers.objects:
        say(f"removed {_leftovers_in_words(total.leftovers)}")
    if total.withdrawn:
        say(f"{counted(total.withdrawn, 'session')} stayed: held, or written to meanwhile")
    if result.refused:
        say(f"{counted(result.refused, 'session')} could not be deleted whole: the store refuses; see the log")


def _leftovers_in_words(found: LeftoversFound) -> str:
    clusters, rayjobs = counted(found.clusters, "cluster"), counted(found.rayjobs, "RayJob")
    return f"what is left of {clusters} and {rayjobs} without a session, {counted(found.objects, 'object')}"


def _add(total: SweepResult, result: SweepResult) -> None:
    total.removed += result.removed
    total.bytes += result.bytes
    total.withdrawn += result.withdrawn
    total.leftovers.clusters += result.leftovers.clusters
    total.leftovers.rayjobs += result.leftovers.rayjobs
    total.leftovers.objects += result.leftovers.objects


class _Progress:
    """Lines to the terminal, every few seconds, for whoever waits; none where nobody looks."""

    def __init__(self) -> None:
        self._next_at = time.monotonic() + _TOLD_SECONDS

    def __call__(self, words: str) -> None:
        if time.monotonic() >= self._next_at and sys.stderr.isatty():
            self._next_at = time.monotonic() + _TOLD_SECONDS
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()


def run_hold(store_url: str, session: str, reason: str, say: Say, environment: Mapping[str, str] = os.environ) -> None:
    """Hold a session. Raises RaykeeperError."""
    id_ = parse_session_name(session)
    store, clock = open_store(parse_store_url(store_url, environment)), SystemClock()
    is_new = asyncio.run(hold(store, clock, StoreClock(store, clock), id_, _user(), reason))
    say(f"{id_}: held" if is_new else f"{id_}: was held before")


def run_release(store_url: str, session: str, say: Say, environment: Mapping[str, str] = os.environ) -> None:
    """Hold a session no longer. Raises RaykeeperError."""
    id_ = parse_session_name(session)
    if not asyncio.run(release(open_store(parse_store_url(store_url, environment)), id_)):
        raise NotHeld(f"session {id_} is not held")
    say(f"{id_}: released")


class NotHeld(RaykeeperError):
    """There is nothing to release."""


def _user() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):
        return socket.gethostname()
