# ruff: noqa: S608 - statements are made of constants of this file and of paths
"""Tables of resource samples: blocks of many nodes in, Parquet files out.

A row is one node, or one of its GPUs, for ten seconds (`fine`) or for five minutes (`coarse`): who looks at a week of a
thousand nodes reads the latter alone. Blocks go through DuckDB as lines of JSON, five minutes each: with whole hours it
would need 100 MB more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from raykeeper.history.ingest.database import IngestDatabase, Limits, literal, literals
from raykeeper.history.ingest.tables import Column, Rule, Table
from raykeeper.layout.samples import FIELDS, GPU_FIELDS, STEP_SECONDS, SampleBlock

TABLES_VERSION = "1"
"""Of the rules here: part of the names of all tables."""
COARSE_SECONDS = 300
MEASURES = ("cpu", "memory", "object_store", "disk", "received", "sent", "gpu_used", "gpu_memory")
"""What goes up and down: of these the least and the greatest value are kept, too."""
_OF_GPU = {"used": "gpu_used", "memory": "gpu_memory", "memory_total": "gpu_memory_total"}
LEVELS = (
    *("cpu_total", "cpu_reserved", "memory_total", "object_store_total", "disk_total"),
    *("gpu_total", "gpu_reserved", "gpu_memory_total"),
)
"""What there was of it, or was reserved."""
VALUES = (*MEASURES, *LEVELS)
HUNDREDTHS = 100
"""Of a CPU or a GPU, in which they are counted."""

BRIDGED_ROWS = 3
"""Missing rows between two of a block that were a pause of the collector, not of the node. More are a gap."""
CARRIED_ROWS = 12
"""For so many rows a value counts as still the same: of nodes whose metrics are large, it is looked at every two
minutes."""
_PIECE_ROWS = COARSE_SECONDS // STEP_SECONDS
_ROW_GROUP = 20_480
_LINE_BYTES = 1 << 18

Values = list[int | None]


def _table(name: str, *more: Column) -> Table:
    known = (("node_id", "VARCHAR"), ("gpu", "SMALLINT"), ("gpu_name", "VARCHAR"), ("ts", "BIGINT"), ("n", "INTEGER"))
    columns = [Column(column, kind, Rule.KEY) for column, kind in known]
    columns += [Column(value, "FLOAT", Rule.DERIVED) for value in VALUES]
    return Table(name, (*columns, *more), order=("gpu", "node_id", "ts"))


FINE = _table("samples_fine")
"""`ts` is in seconds since 1970, `gpu` empty for the row of the whole node, `n` the number of rows that are in one."""
COARSE = _table(
    "samples_coarse",
    *(Column(f"{value}_{end}", "FLOAT", Rule.DERIVED) for value in MEASURES for end in ("min", "max")),
)
SAMPLE_TABLES = {table.name: table for table in (FINE, COARSE)}


@dataclass(frozen=True)
class BlockLines:
    """What DuckDB reads of a block: lines of five minutes."""

    node: tuple[bytes, ...]
    gpus: tuple[bytes, ...]


def block_lines(node_id: str, block: SampleBlock, begin: int, end: int) -> BlockLines:
    """The rows of a block between two moments. Pure."""
    node = {name: block.values(getattr(block, name)) for name in FIELDS}
    gpus = [{_OF_GPU[name]: block.values(getattr(gpu, name)) for name in GPU_FIELDS} for gpu in block.gpus]
    there = rows_there([*node.values(), *(values for gpu in gpus for values in gpu.values())])
    there = [is_there and begin <= block.start + STEP_SECONDS * row < end for row, is_there in enumerate(there)]
    gpus = [{name: carried(values) for name, values in gpu.items()} for gpu in gpus]
    for gpu in gpus:
        gpu["gpu_total"] = [HUNDREDTHS] * block.rows
    node = {name: carried(values) for name, values in node.items()} | _summed(gpus)
    return BlockLines(
        tuple(_pieces({"node_id": node_id}, block.start, there, node)),
        tuple(
            line
            for gpu, values in zip(block.gpus, gpus, strict=True)
            for line in _pieces(
                {"node_id": node_id, "gpu": gpu.index, "gpu_name": gpu.name}, block.start, there, values
            )
        ),
    )


def rows_there(columns: Sequence[Values]) -> list[bool]:
    """Which rows of a block count: those with a value, and short pauses between them. Pure."""
    there = [any(value is not None for value in row) for row in zip(*columns, strict=True)]
    if all(there):
        return there
    for begin, end in _runs(there, value=False):
        if begin > 0 and end < len(there) and end - begin <= BRIDGED_ROWS:
            there[begin:end] = [True] * (end - begin)
    return there


def carried(values: Values) -> Values:
    """Each value until the next one, but not for ever. Pure."""
    if None not in values:
        return values
    filled, last, age = list(values), None, 0
    for row, value in enumerate(values):
        if value is not None:
            last, age = value, 0
        elif last is not None and age < CARRIED_ROWS:
            filled[row], age = last, age + 1
    return filled


def write_tables(lines: Sequence[Path], folder: Path) -> dict[str, Path]:
    """The file of each table, made of files of lines: of nodes, then of GPUs. Blocks: for a thread."""
    written = {}
    database = IngestDatabase(folder, Limits().small())
    try:
        database.execute("SET preserve_insertion_order = true")
        for table, query in ((FINE, _fine(lines)), (COARSE, _coarse(lines))):
            written[table.name] = path = folder / f"{table.name}.parquet"
            options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP}"
            database.write(f"COPY ({query}) TO {literal(path)} ({options})")
    finally:
        database.close()
    return written


def _pieces(
    names: Mapping[str, object], start: int, there: Sequence[bool], columns: Mapping[str, Values]
) -> Iterator[bytes]:
    """Lines of five minutes by the clock, without rows that are not there."""
    row = 0
    while row < len(there):
        begin = start + STEP_SECONDS * row
        end = row + _PIECE_ROWS - begin // STEP_SECONDS % _PIECE_ROWS
        rows = [place for place in range(row, min(end, len(there))) if there[place]]
        if rows:
            times = [start + STEP_SECONDS * place for place in rows]
            yield _ENCODER.encode({**names, "ts": times, **_picked(columns, rows)})
        row = end


def _picked(columns: Mapping[str, Values], rows: Sequence[int]) -> Mapping[str, Values]:
    if len(rows) == rows[-1] - rows[0] + 1:
        return {name: values[rows[0] : rows[-1] + 1] for name, values in columns.items()}
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _summed(gpus: Sequence[Mapping[str, Values]]) -> dict[str, Values]:
    """What all GPUs of a node have together."""
    if not gpus:
        return {}
    return {
        name: [
            sum(known) if (known := [value for value in row if value is not None]) else None
            for row in zip(*(gpu[name] for gpu in gpus), strict=True)
        ]
        for name in gpus[0]
    }


def _runs(there: Sequence[bool], *, value: bool) -> Iterable[tuple[int, int]]:
    begin = 0
    while begin < len(there):
        end = next((row for row in range(begin, len(there)) if there[row] != there[begin]), len(there))
        if there[begin] is value:
            yield begin, end
        begin = end


_ENCODER = msgspec.json.Encoder()


def _lines(files: Sequence[Path]) -> str:
    kinds = {"node_id": "VARCHAR", "gpu": "SMALLINT", "gpu_name": "VARCHAR", "ts": "BIGINT[]"}
    kinds |= dict.fromkeys(VALUES, "FLOAT[]")
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in kinds.items())
    options = f"format = 'newline_delimited', maximum_object_size = {_LINE_BYTES}"
    return f"read_json({literals(files)}, columns = {{{columns}}}, {options})"


def _fine(files: Sequence[Path]) -> str:
    values = ", ".join(f"unnest({value}) AS {value}" for value in VALUES)
    return f"SELECT node_id, gpu, gpu_name, unnest(ts) AS ts, 1::INTEGER AS n, {values} FROM {_lines(files)}"


def _coarse(files: Sequence[Path]) -> str:
    """Two lines may be about the same five minutes: where a block was sealed early, or a collector was restarted."""
    sums = [f"list_sum({value}) AS {value}_sum, list_count({value}) AS {value}_count" for value in VALUES]
    ends = [f"list_{end}({value}) AS {value}_{end}" for value in MEASURES for end in ("min", "max")]
    pieces = f"""
        SELECT node_id, gpu, gpu_name, ts[1] // {COARSE_SECONDS} * {COARSE_SECONDS} AS ts, len(ts) AS n,
            {", ".join(sums + ends)}
        FROM {_lines(files)}
    """
    means = [f"(sum({value}_sum) / nullif(sum({value}_count), 0))::FLOAT AS {value}" for value in VALUES]
    whole = [f"{end}({value}_{end})::FLOAT AS {value}_{end}" for value in MEASURES for end in ("min", "max")]
    return f"""
        SELECT node_id, gpu, max(gpu_name) AS gpu_name, ts, sum(n)::INTEGER AS n, {", ".join(means + whole)}
        FROM ({pieces}) GROUP BY node_id, gpu, ts ORDER BY gpu NULLS FIRST, node_id, ts
    """
