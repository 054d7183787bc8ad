"""An object store behind a network: S3, Google Cloud Storage, Azure Blob Storage or Alibaba OSS, through opendal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raykeeper.logs import Log
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.errors import BucketMissing, ObjectMissing, ObjectTooLarge
from raykeeper.storage.files import file_chunks, write_whole_file
from raykeeper.storage.patience import Patience
from raykeeper.storage.remote.buckets import BucketMaker
from raykeeper.storage.remote.calls import Calls, NotOffered, PastTheEnd, ThereAlready
from raykeeper.storage.remote.failures import Meaning
from raykeeper.storage.remote.operators import PART_BYTES, Operators
from raykeeper.storage.store import (
    OBJECT_LIMIT_BYTES,
    Names,
    ObjectStat,
    ObjectStore,
    checked_key,
    checked_prefix,
)

if TYPE_CHECKING:
    from opendal.types import Metadata

T = TypeVar("T")

log = Log("raykeeper.storage")

_PIECE_BYTES = 1 << 20
_NOT_SENT = "error sending request"
"""All that files of opendal tell of a connection that failed, whether it was refused or had no address."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class RemoteStore(ObjectStore):
    """Objects of one bucket. `bucket_maker` is asked once, by the first write that finds no bucket."""

    def __init__(
        self, settings: StoreSettings, operators: Operators, patience: Patience, bucket_maker: BucketMaker | None = None
    ) -> None:
        self._settings = settings
        self._operators = operators
        self._patience = patience
        self._bucket_maker = bucket_maker
        self._calls = Calls(settings, patience, operators.file_errors)
        self._can_start_after = operators.reading.capability().list_with_start_after
        self._has_seen_bucket = False
        self._has_made_bucket = False
        self._has_conditions = True
        """Whether the server is believed to know conditional writes; not every one that speaks S3 does."""
        self._making_bucket = asyncio.Lock()

    def describe(self) -> str:
        return self._settings.describe()

    async def put(self, key: str, data: bytes) -> None:
        checked_key(key)
        await self._write(key, len(data), lambda: self._operators.writing.write(key, data))

    async def create(self, key: str, data: bytes) -> bool:
        checked_key(key)
        if self._has_conditions:
            try:
                return await self._create(key, data)
            except NotOffered as exc:
                self._has_conditions = False
                log.warning("this store cannot create objects only once: let one history server write", cause=str(exc))
        if await self._is_there(key):
            return False
        await self.put(key, data)
        return True

    async def _is_there(self, key: str) -> bool:
        try:
            await self.stat(key)
        except (ObjectMissing, BucketMissing):
            return False
        return True

    async def _create(self, key: str, data: bytes) -> bool:
        attempts = 0

        def attempt() -> Awaitable[None]:
            nonlocal attempts
            attempts += 1
            return self._operators.writing.write(key, data, if_not_exists=True)

        try:
            await self._write(key, len(data), attempt)
        except ThereAlready:
            # What is there may be our own earlier attempt, whose answer was lost.
            return attempts > 1 and await self._is_ours(key, data)
        return True

    async def _is_ours(self, key: str, data: bytes) -> bool:
        try:
            return await self.find(key, len(data)) == data
        except ObjectTooLarge:
            return False

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        checked_key(key)
        return await self._read(key, lambda: self._read_whole(key, limit_bytes))

    async def _read_whole(self, key: str, limit_bytes: int) -> bytes:
        """In pieces, as they come: opendal would take all of an object into memory, however large it is."""
        data = bytearray()
        file = await self._operators.reading.open(key, "rb")
        try:
            while piece := await file.read(_PIECE_BYTES):
                data += piece
                if len(data) > limit_bytes:
                    raise ObjectTooLarge(self.describe(), key, limit_bytes)
        except OSError as exc:
            if _NOT_SENT in str(exc):
                await self._operators.reading.stat(key)  # fails the same way, and says why
            raise
        finally:
            await file.close()
        return bytes(data)

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        checked_key(key)
        try:
            return await self._read_exactly(key, offset, length)
        except PastTheEnd:
            # opendal takes a range that the object does not fill for a broken answer: ask for what there is.
            left = (await self.stat(key)).size - offset
            return await self._read_exactly(key, offset, min(left, length)) if left > 0 else b""

    async def stat(self, key: str) -> ObjectStat:
        checked_key(key)
        return to_stat(key, await self._read(key, lambda: self._operators.reading.stat(key)))

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        checked_prefix(prefix)
        start, failures, is_whole = after, 0, False
        while not is_whole:
            try:
                async for found in self._list_from(prefix, start):
                    start, failures = found.key, 0
                    if found.key > after:
                        yield found
                is_whole = True
            except self._operators.errors as exc:
                failure = self._calls.failure(exc, of_object=False)
                failures += 1
                if failure.meaning is not Meaning.UNAVAILABLE or failures >= self._patience.attempts:
                    raise self._calls.error(prefix, failure) from exc
                await self._calls.pause(failures - 1)  # then goes on behind the last key it has seen

    async def list_folders(self, prefix: str) -> Names:
        checked_prefix(prefix)

        async def attempt() -> Names:
            entries = await self._operators.reading.list(prefix, recursive=False)
            return [entry.path async for entry in entries if entry.path.endswith("/") and entry.path != prefix]

        paths = await self._calls.call(prefix, attempt, of_object=False)
        return sorted(path.removeprefix(prefix).rstrip("/") for path in paths)

    async def delete(self, key: str) -> None:
        checked_key(key)
        await self._calls.call(key, lambda: self._operators.reading.delete(key))

    async def put_file(self, key: str, path: Path) -> None:
        checked_key(key)
        size = (await asyncio.to_thread(path.stat)).st_size
        if size <= PART_BYTES:
            await self.put(key, await asyncio.to_thread(path.read_bytes))
        else:
            await self._with_bucket(lambda: self._upload(key, path, size))

    async def get_file(self, key: str, path: Path, limit_bytes: int | None = None) -> None:
        size = (await self.stat(key)).size
        if limit_bytes is not None and size > limit_bytes:
            raise ObjectTooLarge(self.describe(), key, limit_bytes)
        starts = range(0, size, PART_BYTES)
        parts = (await self._read_exactly(key, start, min(PART_BYTES, size - start)) for start in starts)
        await write_whole_file(path, parts)

    async def _read_exactly(self, key: str, offset: int, length: int) -> bytes:
        return await self._read(key, lambda: self._operators.reading.read(key, offset=offset, size=length))

    async def _read(self, key: str, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await self._calls.call(key, attempt)
        except ObjectMissing:
            await self._look_for_bucket()
            raise
        self._has_seen_bucket = True
        return answer

    async def _look_for_bucket(self) -> None:
        """Raise `BucketMissing` if that is why an object was not found: S3's HEAD and Google do not tell it apart."""
        if not self._has_seen_bucket:
            async for _ in self.list(""):
                break
            self._has_seen_bucket = True

    async def _write(self, key: str, size: int, attempt: Callable[[], Awaitable[None]]) -> None:
        seconds = self._patience.transfer_seconds(size)
        await self._with_bucket(lambda: self._calls.call(key, attempt, of_object=False, seconds=seconds))

    async def _with_bucket(self, write: Callable[[], Awaitable[None]]) -> None:
        """Do a write; where it finds no bucket, make that once and do it again, as KubeRay's users are used to."""
        try:
            await write()
        except BucketMissing:
            if self._bucket_maker is None:
                raise
            await self._make_bucket_once(self._bucket_maker)
            await write()

    async def _make_bucket_once(self, maker: BucketMaker) -> None:
        async with self._making_bucket:
            if not self._has_made_bucket:
                await maker.make()
                self._has_made_bucket = True
                log.info("bucket created", store=self.describe())

    async def _upload(self, key: str, path: Path, size: int) -> None:
        """Write a large file in parts. When that fails nothing is there: only `close` makes an object of the parts."""
        opening = self._operators.uploading.open(key, "wb", chunk=PART_BYTES)
        target = await self._once(key, opening)
        async for chunk in file_chunks(path, size, PART_BYTES):
            await self._once(key, target.write(chunk))
        await self._once(key, target.close())

    async def _once(self, key: str, step: Awaitable[T]) -> T:
        """One step of an upload; opendal itself asks again for it."""
        try:
            return await step
        except self._operators.file_errors as exc:
            raise self._calls.error(key, self._calls.failure(exc, of_object=False)) from exc

    async def _list_from(self, prefix: str, start: str) -> AsyncIterator[ObjectStat]:
        """What the server lists behind `start`, by its own order: what is "behind" is not for us to say there."""
        is_told = self._can_start_after and bool(start)
        entries = await self._operators.reading.list(prefix, recursive=True, start_after=start if is_told else None)
        async for entry in entries:
            if (is_told or entry.path > start) and not entry.path.endswith("/"):
                yield to_stat(entry.path, entry.metadata)


def to_stat(key: str, metadata: Metadata) -> ObjectStat:
    """opendal's metadata in our words."""
    return ObjectStat(key, metadata.content_length, metadata.last_modified or _NEVER)
