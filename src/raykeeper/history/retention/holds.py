"""Legal hold: a marker that keeps a session, whatever its age.

A hold and a removal may begin in the same moment. Both write before they look: the holder its marker before it looks
for a deletion that has begun, the remover its begin before it looks for holds. So at least one sees the other. A holder
that saw none confirms its marker, and only then says that the session is held.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.keys import KUBE_FOLDER, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.retention import HOLDS_PREFIX, Hold, begun_key, hold_key, parse_session_mark, removed_key
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

CONFIRM_SECONDS = 60.0
"""A holder that was not done by then says that it failed."""
ABANDONED_AFTER = timedelta(minutes=5)
"""A marker that was not confirmed by then, by the store's clock, was left by a holder that was killed."""
MOST_HOLDS = 100_000
TEXT_CHARS = 500


class HoldFailed(RaykeeperError):
    """The session could not be held."""


async def hold(
    store: ObjectStore, clock: Clock, store_clock: StoreClock, session: SessionId, by: str, reason: str
) -> bool:
    """Hold the session; whether it was not held before. Raises HoldFailed."""
    began, key = clock.steady(), hold_key(session)
    await _check_there(store, session)
    asked = Hold(at=clock.now(), by=by[:TEXT_CHARS], reason=reason[:TEXT_CHARS])
    if not await store.create(key, encode_record(asked)):
        if await is_held(store, session):
            return False
        if await is_marker_young(store, store_clock, session):
            raise HoldFailed(f"somebody else is about to hold {session}: try again in a few minutes")
        await store.delete(key)
        if not await store.create(key, encode_record(asked)):
            raise HoldFailed(f"somebody else is about to hold {session}: try again in a few minutes")
    if await store.find(begun_key(session)) is not None:
        await store.delete(key)
        raise HoldFailed(f"session {session} is being deleted: it is too late to hold it")
    try:
        await _check_there(store, session)  # a deletion that is done has no begin any more
    except HoldFailed:
        await store.delete(key)
        raise
    if clock.steady() - began > CONFIRM_SECONDS:
        await store.delete(key)
        raise HoldFailed(f"the store was too slow to hold {session}: try again")
    await store.put(key, encode_record(msgspec.structs.replace(asked, is_confirmed=True)))
    return True


async def is_marker_young(store: ObjectStore, store_clock: StoreClock, session: SessionId) -> bool:
    """Whether a holder may still be about to confirm its marker."""
    try:
        written = (await store.stat(hold_key(session))).modified
    except ObjectMissing:
        return False
    return await store_clock.now() - written < ABANDONED_AFTER


async def release(store: ObjectStore, session: SessionId) -> bool:
    """Hold the session no longer; whether it was held."""
    was_held = await find_hold(store, session) is not None
    await store.delete(hold_key(session))
    return was_held


async def find_hold(store: ObjectStore, session: SessionId) -> Hold | None:
    """What holds the session, confirmed or not. A marker that cannot be read holds as well."""
    try:
        return await find_record(store, hold_key(session), Hold)
    except DamagedRecord:
        stat = await store.stat(hold_key(session))
        return Hold(at=stat.modified, reason="the marker cannot be read", is_confirmed=True)


async def is_held(store: ObjectStore, session: SessionId) -> bool:
    found = await find_hold(store, session)
    return found is not None and found.is_confirmed


async def held_sessions(store: ObjectStore) -> frozenset[SessionId]:
    """All sessions with a marker, also one that is not confirmed. Raises HoldFailed where there are too many."""
    found = set[SessionId]()
    async for stat in store.list(HOLDS_PREFIX):
        if (mark := parse_session_mark(stat.key)) is not None:
            found.add(mark.session)
        if len(found) > MOST_HOLDS:
            raise HoldFailed(f"{store.describe()}: more than {MOST_HOLDS:,} sessions are held")
    return frozenset(found)


async def _check_there(store: ObjectStore, session: SessionId) -> None:
    """Raises HoldFailed for a session of which the store has nothing, or only what came after its removal."""
    if await store.find(removed_key(session)) is not None:
        raise HoldFailed(f"session {session} was removed: it is too late to hold it")
    if session.session != KUBE_FOLDER:
        async for _ in store.list(session.prefix):
            return
    raise HoldFailed(f"{store.describe()}: there is no session {session}")
