"""Local files in pieces, read and written off the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path


async def file_chunks(path: Path, size: int, chunk_bytes: int) -> AsyncIterator[bytes]:
    """The first `size` bytes of a file, in pieces. Raises `OSError` when it became shorter."""
    with path.open("rb") as source:
        left = size
        while left:
            chunk = await asyncio.to_thread(source.read, min(chunk_bytes, left))
            if not chunk:
                raise OSError(f"{path} became shorter while it was read: {left} of {size} bytes are missing")
            left -= len(chunk)
            yield chunk


async def write_whole_file(path: Path, pieces: AsyncIterator[bytes]) -> None:
    """Write a file from its pieces; it is there only once all of them are."""
    unfinished = path.with_name(f"{path.name}.part-{os.urandom(4).hex()}")
    try:
        with unfinished.open("wb") as target:
            async for piece in pieces:
                await asyncio.to_thread(target.write, piece)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
