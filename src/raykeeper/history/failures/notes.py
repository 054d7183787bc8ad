"""Notes and mutes: read from the store and written to it, one object each, the last one counts."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Collection

from raykeeper.errors import RaykeeperError
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.query.history import History
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.failure_notes import (
    NOTE_CHARS,
    NOTES_PREFIX,
    FailureNote,
    note_key,
    notes_prefix,
    parse_note_key,
)
from raykeeper.layout.keys import VERSION
from raykeeper.layout.records import encode_record
from raykeeper.logs import Log
from raykeeper.masking import masked_text
from raykeeper.storage.errors import StoreRefused
from raykeeper.storage.store import ObjectStat, ObjectStore

NOTES_OF_KIND = 200
"""As often may one failure be talked about."""
MOST_LISTED = 20_000
"""Objects that one look goes through."""
_READ_AT_ONCE = 32
_ACCESS_BELIEVED_SECONDS = 600.0

log = Log("raykeeper.history.failures")


async def read_notes(history: History) -> dict[str, FailureNote]:
    """What was said last about each kind of failure, by its fingerprint."""
    keys, listed = defaultdict[str, list[str]](list), 0
    async for stat in history.catalog.store.list(NOTES_PREFIX):
        listed += 1
        fingerprint = parse_note_key(stat.key)
        if fingerprint is not None:
            keys[fingerprint].append(stat.key)
        if listed >= MOST_LISTED:
            break
    reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(keys_of_kind: list[str]) -> FailureNote | None:
        async with reads:
            return await _last_visible(history, keys_of_kind)

    found = await asyncio.gather(*map(read, keys.values()))
    return {fingerprint: note for fingerprint, note in zip(keys, found, strict=True) if note}


async def read_note(history: History, fingerprint: str) -> FailureNote | None:
    """What was said last about one kind of failure."""
    return await _last_visible(history, [stat.key for stat in await _notes_of(history.catalog.store, fingerprint)])


async def _last_visible(history: History, keys: list[str]) -> FailureNote | None:
    """The last of these notes that whoever asks may see: those of people who see other namespaces are passed over."""
    for key in sorted(keys, reverse=True)[:NOTES_OF_KIND]:
        note = await _read(history.catalog.store, key)
        if note is None or history.visibility.sees_each(note.namespaces):
            return note
    return None


async def write_note(
    history: History, fingerprint: str, text: str, *, is_muted: bool, seen_in: Collection[str] = ()
) -> None:
    """Say something about a kind of failure. Secrets in it are masked before they are stored.

    `seen_in` are the namespaces in which its author saw the failure. Who may see everything speaks to everybody.

    Raises InvalidQuery for what is too long or too much, and what the store raises.
    """
    if len(text) > NOTE_CHARS:
        raise InvalidQuery(f"a note has at most {NOTE_CHARS:,} characters; this one has {len(text):,}")
    store = history.catalog.store
    if len(await _notes_of(store, fingerprint)) >= NOTES_OF_KIND:
        raise InvalidQuery(f"this failure has {NOTES_OF_KIND} notes already: delete objects below {NOTES_PREFIX}")
    now = history.clock.now()
    namespaces = () if history.visibility.is_everything else tuple(sorted(seen_in))
    note = FailureNote(at=now, text=masked_text(text.strip()), is_muted=is_muted, namespaces=namespaces)
    key = note_key(fingerprint, int(now.timestamp() * 1_000_000_000), os.urandom(4).hex())
    await store.create(key, encode_record(note))
    log.info("note on a failure stored", fingerprint=fingerprint, muted=is_muted)


async def may_write(history: History, seconds: float) -> bool:
    """Whether the store takes what we write: known after so many seconds at the latest, else no.

    A refusal is believed for long; a store that does not answer now is asked again soon.
    """
    look = history.looks.look("write access", lambda: _can_put(history.catalog.store), False, _ACCESS_BELIEVED_SECONDS)
    try:
        return await look.known_within(seconds)
    except RaykeeperError:
        return False


async def _can_put(store: ObjectStore) -> bool:
    """Tried with a small object that is deleted at once. Raises what the store raises beside a refusal."""
    key = f"{VERSION}/clock/{os.urandom(8).hex()}"
    try:
        await store.put(key, b"?")
        await store.delete(key)
    except StoreRefused as exc:
        log.info("notes on failures are off: nothing can be written to the store", cause=str(exc))
        return False
    return True


async def _notes_of(store: ObjectStore, fingerprint: str) -> list[ObjectStat]:
    found = list[ObjectStat]()
    async for stat in store.list(notes_prefix(fingerprint)):
        if parse_note_key(stat.key) == fingerprint:
            found.append(stat)
        if len(found) >= NOTES_OF_KIND:
            break
    return found


async def _read(store: ObjectStore, key: str) -> FailureNote | None:
    try:
        return await find_record(store, key, FailureNote)
    except DamagedRecord as exc:
        log.warning("note on a failure cannot be read", key=key, cause=str(exc))
        return None
