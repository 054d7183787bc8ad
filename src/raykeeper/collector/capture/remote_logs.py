"""Takes a node's log files through the dashboard, which asks that node's agent for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol
from urllib.parse import quote

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.capture.answers import Tally
from raykeeper.collector.poll.outbox import Puts
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import LogPackKey, SessionId
from raykeeper.layout.packs import PackWriter
from raykeeper.layout.records import MissingLog
from raykeeper.ray.dashboard import Answer
from raykeeper.ray.errors import NotAnswered, OversizedAnswer, RayRefused
from raykeeper.storage.errors import StoreUnavailable
from raykeeper.times import to_ns

FRAME_BYTES = 256 << 10  # the unit in which a reader fetches
PACK_BYTES = 8 << 20
MAX_FILE_BYTES = 2 << 30  # four times the size at which Ray rotates its own logs
MAX_FOLDERS = 1_000  # of one node; Ray makes about ten
_USER_FILES = ("worker-", "job-driver-")


class Streams(Protocol):
    """The part of a dashboard that is needed here."""

    async def get(self, path: str, limit_bytes: int | None = None) -> Answer: ...

    def stream(self, path: str) -> AsyncGenerator[bytes, None]: ...


class _Listing(msgspec.Struct):
    class Data(msgspec.Struct):
        result: dict[str, list[str]]

    data: Data


def parse_listing(body: bytes) -> tuple[list[str], list[str]]:
    """Files and folders of one answer, relative to `logs/`. Raises msgspec.DecodeError for anything else."""
    names = {name for group in msgspec.json.decode(body, type=_Listing).data.result.values() for name in group}
    files = [name for name in names if not name.endswith("/")]
    folders = [name for name in names if name.endswith("/") and not name.startswith(".")]
    return sorted(files), sorted(folders)


def user_files_first(files: list[str]) -> list[str]:
    """What users wrote before what Ray wrote: a capture may be stopped half-way."""
    return sorted(files, key=lambda name: (not name.startswith(_USER_FILES), name))


class RemoteLogs:
    """Takes the logs of one node into packs."""

    def __init__(
        self, dashboard: Streams, bucket: Puts, session: SessionId, node_id: str, clock: Clock, tally: Tally
    ) -> None:
        self._dashboard = dashboard
        self._bucket = bucket
        self._session = session
        self._node_id = node_id
        self._clock = clock
        self._tally = tally
        self._writer = PackWriter()
        self._sequence = 0
        self._missing: list[MissingLog] = []
        self._not_answered: list[str] = []

    async def take(self) -> tuple[MissingLog, ...]:
        """Store every file; returns those of which something is missing."""
        for name in user_files_first(await self._list()):
            await self._take_file(name)
        await self._put_pack()
        if self._not_answered:
            files = ", ".join(self._not_answered)
            # Ray 2.52 answers so for empty files too, and nothing else tells how long a file is.
            self._tally.gaps.append(f"logs of node {self._node_id} that were answered with an error: {files}")
        return tuple(self._missing)

    async def _list(self) -> list[str]:
        files: list[str] = []
        folders = [""]
        for _ in range(MAX_FOLDERS):
            if not folders:
                break
            found, inner = await self._list_folder(folders.pop())
            files += found
            folders += inner
        return files

    async def _list_folder(self, folder: str) -> tuple[list[str], list[str]]:
        path = f"/api/v0/logs?node_id={self._node_id}&glob={quote(f'{folder}*', safe='')}"
        try:
            answer = await self._dashboard.get(path)
            return parse_listing(answer.body)
        except (Unavailable, RayRefused, OversizedAnswer, msgspec.DecodeError) as exc:
            self._tally.gaps.append(f"logs of node {self._node_id} in {folder or 'logs/'} not listed: {exc}")
            return [], []

    async def _take_file(self, name: str) -> None:
        """Append one file to the packs, frame by frame, and count what is missing at its end."""
        query = f"node_id={self._node_id}&filename={quote(name, safe='')}&lines=-1"
        generation, offset = f"{self._now_ns()}-0", 0
        try:
            async with aclosing(_frames(self._dashboard.stream(f"/api/v0/logs/file?{query}"))) as frames:
                async for data in frames:
                    if offset + len(data) > MAX_FILE_BYTES:
                        raise Unavailable(name, f"larger than {MAX_FILE_BYTES} bytes")  # noqa: TRY301 - ends like a cut
                    self._writer.add(name, generation, offset, data, self._now_ns())
                    offset += len(data)
                    if self._writer.size >= PACK_BYTES:
                        await self._put_pack()
        except NotAnswered:
            self._not_answered.append(name)
            return
        except StoreUnavailable:
            raise  # not the log is cut, but the bucket away
        except (Unavailable, RayRefused) as exc:
            self._tally.gaps.append(f"log {name} of node {self._node_id} is not whole: {exc}")
            self._missing.append(MissingLog(path=name, offset=offset, length=0))  # nobody says how long it is
        self._tally.log_files += 1
        self._tally.log_bytes += offset

    async def _put_pack(self) -> None:
        if self._writer:
            key = LogPackKey(self._session, self._node_id, self._now_ns(), self._sequence)
            await self._bucket.put(key.key, self._writer.to_bytes())
            self._sequence += 1
            self._writer = PackWriter()

    def _now_ns(self) -> int:
        return to_ns(self._clock.now())


async def _frames(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same bytes in portions of one frame each."""
    held = bytearray()
    async with aclosing(pieces):
        async for piece in pieces:
            held += piece
            while len(held) >= FRAME_BYTES:
                yield bytes(held[:FRAME_BYTES])
                del held[:FRAME_BYTES]
    if held:
        yield bytes(held)
