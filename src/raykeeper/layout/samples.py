"""Resource samples: what one node used, a row every ten seconds, stored as columns. JSON under zstd. Pure.

Rows lie on a grid: row `i` of a block is about the ten seconds from `start + 10 i` on, so rows of different nodes can
be added up. A block is of one hour at most. A binary form with differences would be a tenth smaller, and nobody could
read it with `zstdcat`.

Whoever may write into the bucket decides what is read here, so everything has a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed
from raykeeper.layout.records import EARLIEST, LATEST

STEP_SECONDS = 10
HOUR_SECONDS = 3600
MAX_ROWS = HOUR_SECONDS // STEP_SECONDS
"""Of one block."""
MAX_GPUS = 64
"""Of one node; today's have 16. Further ones are left out."""
MAX_NAME = 64
"""Characters of a GPU's name."""
MAX_VALUE = 1 << 53
"""The largest number that JSON readers agree about."""
TEXT_LIMIT_BYTES = 4 << 20
"""Of one block, uncompressed: one of 64 GPUs has 0.4 MB."""
SEAL_LEVEL, TAIL_LEVEL = 9, 3
"""Of zstd: for what is kept, and for what a heartbeat carries along for a while."""

Value = Annotated[int, msgspec.Meta(ge=0, le=MAX_VALUE)]
Column = Value | Annotated[list[Value | None], msgspec.Meta(max_length=MAX_ROWS)] | None
"""One value for each row, or one for all of them; None where nothing was measured."""
_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_Index = Annotated[int, msgspec.Meta(ge=0, lt=1024)]


class DamagedSamples(ValueError):
    """The bytes are no block of samples, or a piece of one."""


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU at one moment."""

    index: _Index
    name: _Name = ""
    used: Value | None = None
    """Percent."""
    memory: Value | None = None
    """MiB, as all memory here."""
    memory_total: Value | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node at one moment. What is not known is None."""

    at: Value
    """Seconds since 1970, by the node's clock; a multiple of ten."""
    cpu: Value | None = None
    """CPUs in use, in hundredths."""
    cpu_total: Value | None = None
    cpu_reserved: Value | None = None
    """CPUs that Ray has given to tasks and actors, in hundredths."""
    gpu_reserved: Value | None = None
    """Likewise."""
    memory: Value | None = None
    """MiB that the container uses, without what the kernel could drop."""
    memory_total: Value | None = None
    """The container's limit."""
    object_store: Value | None = None
    object_store_total: Value | None = None
    disk: Value | None = None
    """Of the file system that Ray's temporary folder is on, MiB."""
    disk_total: Value | None = None
    received: Value | None = None
    """Bytes a second over the network."""
    sent: Value | None = None
    gpus: tuple[GpuSample, ...] = ()


FIELDS = tuple(name for name in Sample.__struct_fields__ if name not in ("at", "gpus"))
"""The columns of a node."""
GPU_FIELDS = tuple(name for name in GpuSample.__struct_fields__ if name not in ("index", "name"))
"""The columns of each GPU."""


class GpuColumns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU of a node; the columns of `GpuSample`."""

    index: _Index
    name: _Name = ""
    used: Column = None
    memory: Column = None
    memory_total: Column = None


class SampleBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Successive rows of one node; the columns of `Sample`. A row that is missing has None in every column."""

    start: Value
    """Seconds since 1970 at which the first row begins; a multiple of ten."""
    rows: Annotated[int, msgspec.Meta(ge=1, le=MAX_ROWS)]
    cpu: Column = None
    cpu_total: Column = None
    cpu_reserved: Column = None
    gpu_reserved: Column = None
    memory: Column = None
    memory_total: Column = None
    object_store: Column = None
    object_store_total: Column = None
    disk: Column = None
    disk_total: Column = None
    received: Column = None
    sent: Column = None
    gpus: Annotated[tuple[GpuColumns, ...], msgspec.Meta(max_length=MAX_GPUS)] = ()

    def values(self, column: Column) -> list[int | None]:
        """One for each row."""
        return column if isinstance(column, list) else [column] * self.rows


def slot_of(moment: float) -> int:
    """Where the ten seconds begin that a moment is in."""
    return int(moment // STEP_SECONDS) * STEP_SECONDS


def hour_start(at: int) -> int:
    """Of the UTC hour that a moment is in."""
    return at - at % HOUR_SECONDS


def rounded(value: float, digits: int) -> int:
    """To so many digits that count: fewer different numbers take fewer bytes, and no chart shows more."""
    whole = round(value)
    step = int(10 ** max(0, len(str(whole)) - digits))
    return round(whole / step) * step


def to_block(samples: Sequence[Sample]) -> SampleBlock:
    """Rows of one hour as columns. Of two for the same ten seconds the later one counts."""
    by_slot = {slot_of(sample.at): sample for sample in samples}
    start, last = min(by_slot), max(by_slot)
    rows = (last - start) // STEP_SECONDS + 1
    slots = [by_slot.get(start + STEP_SECONDS * row) for row in range(rows)]
    columns = {name: _column([getattr(slot, name) if slot else None for slot in slots]) for name in FIELDS}
    return msgspec.convert({"start": start, "rows": rows, "gpus": _gpu_columns(slots), **columns}, SampleBlock)


def encode_block(block: SampleBlock, level: int = SEAL_LEVEL) -> bytes:
    """The object's bytes."""
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(msgspec.json.encode(block))


def decode_block(data: bytes) -> SampleBlock:
    """Raises DamagedSamples."""
    try:
        block = _DECODER.decode(decompressed(data, TEXT_LIMIT_BYTES))
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DamagedSamples(str(exc)) from exc
    _check(block)
    return block


_DECODER = msgspec.json.Decoder(SampleBlock)
_FIRST, _LAST = int(EARLIEST.timestamp()), int(LATEST.timestamp())


def _check(block: SampleBlock) -> None:
    if block.start % STEP_SECONDS or not _FIRST <= block.start < _LAST:
        raise DamagedSamples(f"{block.start} is no time of a row")
    columns = [getattr(block, name) for name in FIELDS]
    columns += [getattr(gpu, name) for gpu in block.gpus for name in GPU_FIELDS]
    if any(isinstance(column, list) and len(column) != block.rows for column in columns):
        raise DamagedSamples(f"its columns do not have {block.rows} rows each")


def _column(values: list[int | None]) -> Column:
    """One value where all rows have the same."""
    known = {value for value in values if value is not None}
    if len(known) > 1 or (known and None in values):
        return values
    return known.pop() if known else None


def _gpu_columns(slots: Sequence[Sample | None]) -> list[Mapping[str, object]]:
    found = sorted({(gpu.index, gpu.name) for slot in slots if slot for gpu in slot.gpus})[:MAX_GPUS]
    return [{"index": index, "name": name, **_of_gpu(slots, (index, name))} for index, name in found]


def _of_gpu(slots: Sequence[Sample | None], identity: tuple[int, str]) -> Mapping[str, Column]:
    rows = [
        next((gpu for gpu in slot.gpus if (gpu.index, gpu.name) == identity), None) if slot else None for slot in slots
    ]
    return {name: _column([getattr(row, name) if row else None for row in rows]) for name in GPU_FIELDS}
