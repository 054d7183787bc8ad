"""Removes table files that no manifest needs any more, once no reader can still be about to open them."""

from __future__ import annotations

from datetime import datetime, timedelta

from raykeeper.history.ingest.manifests import Manifest
from raykeeper.layout.keys import SessionId, log_indexes_prefix, manifest_key, manifests_prefix
from raykeeper.storage.store import ObjectStore

KEPT_FOR = timedelta(hours=1)
"""A replica that read an older manifest may still fetch its files; one that makes the next has put some."""


async def sweep_tables(
    store: ObjectStore, session: SessionId, newest: Manifest, number: int, now: datetime
) -> list[str]:
    """Delete what the newest manifest does not name and is older than an hour; the keys of what went.

    Log indexes are of no manifest and never superseded: they stay as long as the session.
    """
    kept = {file.key for file in newest.files()} | {manifest_key(session, number)}
    prefix = manifests_prefix(session).removesuffix("manifests/")
    listed = [item async for item in store.list(prefix) if not item.key.startswith(log_indexes_prefix(session))]
    old = [item.key for item in listed if item.key not in kept and now - item.modified > KEPT_FOR]
    for key in old:
        await store.delete(key)
    return old
