"""The objects of a bucket as files of a folder, with the times they have there: a store that outlives its server."""

from __future__ import annotations

import os
from pathlib import Path

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.opening import open_store


async def copy_store(settings: StoreSettings, folder: Path, prefix: str = "") -> None:
    """Copy all objects below `prefix`."""
    store = open_store(settings)
    async for found in store.list(prefix):
        file = folder / found.key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(await store.get(found.key))
        at = found.modified.timestamp()
        os.utime(file, (at, at))
