"""`raykeeper delete`: removes sessions for good. What belongs to one is decided by whole names.

Data goes first and the catalog's entry last: a deletion that was interrupted finds the rest when it is repeated.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.history.retention.holds import find_hold
from raykeeper.history.retention.removal import objects_of
from raykeeper.history.store.kuberay.places import KubeRayPlaces
from raykeeper.history.urls import parse_session_name
from raykeeper.layout.compacted import parse_compacted_key
from raykeeper.layout.keys import CATALOG_PREFIX, KUBE_FOLDER, SessionId, parse_catalog_key
from raykeeper.layout.retention import Hold, hold_key
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStat, ObjectStore


async def finish_all(steps: Iterable[Awaitable[None]]) -> None:
    """Let all of them come to their end, then raise the first failure, if any."""
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


Say = Callable[[str], None]
_AT_ONCE = 16
_AGE = re.compile(r"(?P<number>\d{1,5})(?P<unit>[hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SUMMARY = ".summary.json"


class NoSuchSession(RaykeeperError):
    """There is nothing to delete."""

    def __init__(self, store: str, session: SessionId) -> None:
        super().__init__(f"{store}: there is no session {session}")


@dataclass(frozen=True)
class Doomed:
    """Everything of one session."""

    session: SessionId
    data: tuple[ObjectStat, ...]
    entries: tuple[ObjectStat, ...]
    """In the catalog, and KubeRay's marker."""

    @property
    def size(self) -> int:
        return sum(stat.size for stat in self.data)

    @property
    def written_at(self) -> datetime | None:
        """When somebody last wrote to it; tables and summaries do not count, which any reader makes."""
        tables = f"{self.session.prefix}tables/"
        written = (stat for stat in self.data if not stat.key.startswith(tables))
        entered = (stat for stat in self.entries if not stat.key.endswith(_SUMMARY))
        return max((stat.modified for stat in (*written, *entered)), default=None)

    def __str__(self) -> str:
        objects = len(self.data) + len(self.entries)
        return f"{self.session}: {objects} objects, {self.size / 1e6:.1f} MB"


class SessionHeld(RaykeeperError):
    """Somebody wants the session to stay."""

    def __init__(self, session: SessionId, found: Hold) -> None:
        who = f" by {found.by}" if found.by else ""
        why = f" ({found.reason})" if found.reason else ""
        super().__init__(f"session {session} is held{who}{why}: release it first, or give --even-held")


class Deletion:
    """Finds what belongs to sessions, and deletes it."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kuberay = KubeRayPlaces(store, clock)
        self._entries: dict[SessionId, list[ObjectStat]] | None = None
        self._compactions: dict[date, list[ObjectStat]] = {}

    async def find(self, session: SessionId) -> Doomed:
        """All that one session has. Raises `NoSuchSession` if that is nothing."""
        if session.session == KUBE_FOLDER:
            raise Misconfigured("session", str(session), "that folder is the cluster's own and no session")
        data = [stat async for stat in objects_of(self._store, session)]
        entries = (await self._catalog()).get(session, [])
        if place := await self._kuberay.find(session):
            data += [stat async for stat in self._store.list(place.prefix)]
            marker = (await self._kuberay.marked()).markers.get(session)
            entries = [*entries, ObjectStat(place.marker_key, 0, marker.written)] if marker else entries
        if not data and not entries:
            raise NoSuchSession(self._store.describe(), session)
        return Doomed(session, tuple(data), tuple(entries))

    async def older_than(self, age: timedelta, namespace: str = "") -> AsyncIterator[Doomed]:
        """Sessions to which nobody wrote for so long, by the times of their objects, oldest names first."""
        limit = self._clock.now() - age
        known = {*(await self._catalog()), *(await self._kuberay.marked()).markers}
        for session in sorted(known):
            if namespace not in ("", session.namespace):
                continue
            doomed = await self.find(session)
            if doomed.written_at is not None and doomed.written_at < limit:
                yield doomed

    async def find_hold(self, session: SessionId) -> Hold | None:
        """What holds the session, if anything does."""
        return await find_hold(self._store, session)

    async def delete(self, doomed: Doomed) -> None:
        """Remove it all. May be interrupted at any moment and repeated."""
        await self._delete_all(doomed.data)
        await self._delete_all(doomed.entries)
        if await self.find_hold(doomed.session):
            await self._store.delete(hold_key(doomed.session))
        days = {facts.day for stat in doomed.entries if (facts := parse_catalog_key(stat.key))}
        await self._delete_all([stat for day in sorted(days) for stat in self._compactions.pop(day, ())])

    async def _delete_all(self, objects: Sequence[ObjectStat]) -> None:
        for start in range(0, len(objects), _AT_ONCE):
            await finish_all(self._store.delete(stat.key) for stat in objects[start : start + _AT_ONCE])

    async def _catalog(self) -> dict[SessionId, list[ObjectStat]]:
        """All entries by session, listed once."""
        if self._entries is None:
            self._entries = {}
            async for stat in self._store.list(CATALOG_PREFIX):
                if facts := parse_catalog_key(stat.key):
                    self._entries.setdefault(facts.session, []).append(stat)
                elif compacted := parse_compacted_key(stat.key):  # a copy of many entries, which is made again
                    self._compactions.setdefault(compacted.day, []).append(stat)
        return self._entries


@dataclass(frozen=True)
class DeleteOrder:
    """What the user asked for: one session, or all of some age."""

    store_url: str
    session: str = ""
    older_than: str = ""
    namespace: str = ""
    is_dry_run: bool = False
    even_held: bool = False
    """Also what somebody holds."""


def run_delete(
    order: DeleteOrder, say: Say, confirm: Callable[[int], None], environment: Mapping[str, str] = os.environ
) -> None:
    """Say what goes, have it confirmed, and delete it. `confirm` gets the number of sessions and raises to end here."""
    if bool(order.session) == bool(order.older_than):
        raise Misconfigured("session", order.session, "name one session, or give --older-than, and not both")
    deletion = Deletion(open_store(parse_store_url(order.store_url, environment)), SystemClock())
    asyncio.run(_run(order, deletion, say, confirm))


async def _run(order: DeleteOrder, deletion: Deletion, say: Say, confirm: Callable[[int], None]) -> None:
    sessions: list[SessionId] = []
    async for doomed in _doomed(order, deletion):
        found = None if order.even_held else await deletion.find_hold(doomed.session)
        if found is not None and order.session:
            raise SessionHeld(doomed.session, found)
        if found is not None:
            say(f"{doomed.session}: is held, and stays")
            continue
        say(str(doomed))
        sessions.append(doomed.session)  # not its objects: there may be millions in all
    if not sessions:
        say("nothing to delete")
    if order.is_dry_run or not sessions:
        return
    confirm(len(sessions))
    for session in sessions:
        if not order.even_held and (found := await deletion.find_hold(session)):
            raise SessionHeld(session, found)
        await deletion.delete(await deletion.find(session))
        say(f"{session}: deleted")


async def _doomed(order: DeleteOrder, deletion: Deletion) -> AsyncIterator[Doomed]:
    if order.session:
        yield await deletion.find(parse_session_name(order.session))
        return
    async for doomed in deletion.older_than(parse_age("--older-than", order.older_than), order.namespace):
        yield doomed


def parse_age(setting: str, text: str) -> timedelta:
    """A duration such as `90d`, `12h` or `6w`. Raises `Misconfigured`."""
    found = _AGE.fullmatch(text)
    if not found or not int(found["number"]):
        raise Misconfigured(setting, text, "write hours, days or weeks, such as 12h, 90d or 26w")
    return int(found["number"]) * _UNITS[found["unit"]]
