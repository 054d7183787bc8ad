"""Records and polled answers out of the store: read up to what their kind can have, and checked."""

from __future__ import annotations

import asyncio

import msgspec

from raykeeper.errors import RaykeeperError
from raykeeper.layout.keys import SessionId, session_record_key
from raykeeper.layout.polled import OBJECT_LIMIT_BYTES, DamagedAnswer, decode_polled
from raykeeper.layout.records import PolledAnswer, R, SessionRecord, decode_record
from raykeeper.storage.errors import ObjectTooLarge
from raykeeper.storage.store import ObjectStore

_IN_THREAD_BYTES = 64 << 10  # decoding and checking more would be felt by other requests


class DamagedRecord(RaykeeperError):
    """There is an object, and it is no record of ours."""


async def find_record(store: ObjectStore, key: str, kind: type[R]) -> R | None:
    """The record; None where there is none. Raises DamagedRecord."""
    try:
        data = await store.find(key, kind.limit_bytes)
        if data is None or len(data) <= _IN_THREAD_BYTES:
            return None if data is None else decode_record(data, kind)
        return await asyncio.to_thread(decode_record, data, kind)
    except (ObjectTooLarge, msgspec.DecodeError) as exc:
        raise DamagedRecord(str(exc)) from exc


async def find_session_record(store: ObjectStore, session: SessionId) -> SessionRecord | None:
    """The record of a session; None where there is none. Raises DamagedRecord, also for one that names another session:
    whoever believes that could be led to what is not theirs.
    """
    record = await find_record(store, session_record_key(session), SessionRecord)
    if record is not None and SessionId(record.namespace, record.cluster, record.session) != session:
        raise DamagedRecord(f"{session_record_key(session)!r} is about another session")
    return record


async def find_answer(store: ObjectStore, key: str) -> PolledAnswer | None:
    """A polled answer; None where there is none. Raises DamagedAnswer."""
    try:
        data = await store.find(key, OBJECT_LIMIT_BYTES)
    except ObjectTooLarge as exc:
        raise DamagedAnswer(str(exc)) from exc
    return None if data is None else await asyncio.to_thread(decode_polled, data)
