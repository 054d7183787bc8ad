"""Log packs in a local store, looked at by replicas that know nothing yet; and how often the store was asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from raykeeper.history.logs.store import LogStore, NodeFiles
from raykeeper.layout.keys import LogPackKey, SessionId, log_indexes_prefix
from raykeeper.layout.packs import Frame, PackIndex, encode_index
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.history_scene import HEAD_ID, SESSION, STARTED_AT, PackBuilder

PACKS = 20
LATER = STARTED_AT + timedelta(days=1)


async def fill(store: ObjectStore, packs: int = PACKS, node_id: str = HEAD_ID) -> list[str]:
    """One file, a line in each pack; the keys of the packs."""
    builder, keys = PackBuilder(store, node_id=node_id), []
    for number in range(packs):
        builder.add("raylet.out", b"line %03d\n" % number, offset=9 * number)
        keys.append(await builder.put())
    return keys


def collections(folder: Path, session: SessionId = SESSION) -> list[str]:
    found = (path for path in (folder / log_indexes_prefix(session)).rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


async def settled() -> None:
    """Until nothing goes on in the background."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


async def looked(store: ObjectStore, *, at: ManualClock | None = None) -> NodeFiles:
    """As a replica looks that knows nothing yet, when it has done what it does afterwards."""
    files = await LogStore(store, at or ManualClock(now=LATER)).files(SESSION, HEAD_ID)
    await settled()
    return files


def facts(files: NodeFiles) -> object:
    return files.by_path, files.by_generation, files.damaged


def write_pack(folder: Path, sealed_ns: int, number: int, session: SessionId = SESSION) -> None:
    """A pack of which only the index is ever read, written past the store: it would make 17,000 files durable."""
    frames = (Frame(f"worker-{file}.out", f"1-{file}", 10 * number, 10, 0, 20, sealed_ns) for file in range(4))
    path = folder / LogPackKey(session, HEAD_ID, sealed_ns, number).key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_index(PackIndex(tuple(frames))))
