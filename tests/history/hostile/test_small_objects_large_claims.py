"""A few bytes in a bucket or a request that stand for gigabytes or minutes: they cost neither, and hit nobody else."""

from __future__ import annotations

import asyncio
import io
import itertools
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zstandard

from bed.waiting import BUSY_FACTOR
from history.hostile.attacked_server import TASKS, AttackedServer, attacked_server, put_ended_session, put_object
from raykeeper.history.logs.names import InvalidPattern, matching_names
from raykeeper.layout.keys import KubeFactsKey, LogPackKey, PolledKey, SessionId, session_record_key
from raykeeper.layout.packs import Frame, PackIndex, encode_index
from raykeeper.layout.records import SessionRecord, encode_record
from raykeeper.layout.segments import LINE_LIMIT_BYTES, TornSegment, compress_lines, read_lines
from support.asking import ask
from support.conditions import until
from support.history_scene import (
    HEAD_ID,
    SEALED_NS,
    SESSION,
    STARTED_AT,
    PackBuilder,
    a_scene,
    local_store,
    put_session,
    session_url,
)

GIB = 1 << 30
MEMORY_LIMIT_BYTES = 700 << 20
WAIT_LIMIT_SECONDS = 1.0 * BUSY_FACTOR  # 9 s before
HOSTILE = SessionId("attacker", "c", "session_2026-11-15_20-00-00_000000_6")


def zeros_under_zstd(size: int, ending: bytes = b"") -> bytes:
    """So many bytes in one frame of a few thousandths of that."""
    compressor = zstandard.ZstdCompressor(level=19).compressobj()
    piece = b"x" * (1 << 20)
    parts = [compressor.compress(piece) for _ in range(size >> 20)]
    return b"".join([*parts, compressor.compress(ending), compressor.flush()])


def repeated_under_zstd(piece: bytes, times: int, opening: bytes = b"", closing: bytes = b"") -> bytes:
    """A few kilobytes that say the same over and over."""
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    pieces = itertools.chain([opening], itertools.repeat(piece, times), [closing])
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])


def a_pack_of_one_frame(frame: bytes, length: int) -> bytes:
    """As PackWriter makes them, with a frame of any size. Written past the types, whose bounds hold when read."""
    claimed = Frame("big.out", "1-1", 0, length, 0, len(frame), 5)
    return frame + encode_index(PackIndex((claimed,)))


def check_the_others_noticed_nothing(server: AttackedServer) -> None:
    assert server.peak_bytes < MEMORY_LIMIT_BYTES, f"{server.peak_bytes >> 20} MB"
    assert max(server.waits) < WAIT_LIMIT_SECONDS, f"/livez took {max(server.waits):.1f} s"


async def test_an_event_line_of_a_gibibyte_is_a_gap_and_no_memory(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    honest, hostile = await put_ended_session(store), await put_ended_session(store, HOSTILE)
    bomb = zeros_under_zstd(GIB, b"\n")
    assert len(bomb) < 200_000
    await put_object(store, HOSTILE, bomb, 1)
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        for prefix in (hostile, honest):
            status, body = await server.get(f"{prefix}/api/v0/tasks?limit=1")
            assert status == 200
            assert msgspec.json.decode(body)["data"]["result"]["total"] == TASKS
        check_the_others_noticed_nothing(server)


async def test_a_log_frame_of_a_gibibyte_is_called_damaged(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_session(store)
    frame = zeros_under_zstd(GIB)
    await store.put(LogPackKey(SESSION, HEAD_ID, 1, 0).key, a_pack_of_one_frame(frame, GIB))
    builder = PackBuilder(store)
    builder.add("raylet.out", b"fine\n")
    await builder.put()
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        logs = f"{session_url()}/api/v0/logs"
        _, listed = await server.get(f"{logs}?node_id={HEAD_ID}")
        assert b"1 log pack(s) could not be read" in listed
        await server.get(f"{logs}/file?node_id={HEAD_ID}&filename=big.out&lines=5")
        assert await server.get(f"{logs}/file?node_id={HEAD_ID}&filename=raylet.out") == (200, b"fine\n")
        check_the_others_noticed_nothing(server)


async def test_a_gap_of_petabytes_is_named_in_the_archive_and_not_sent(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_session(store)
    builder = PackBuilder(store)
    builder.add("sparse.out", b"begin\n")
    builder.lose("sparse.out", 6, 1 << 48, "deleted before it was read")
    builder.add("raylet.out", b"fine\n")
    await builder.put()
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        status, archive = await server.get(f"{session_url()}/api/v0/logs/archive")
        assert status == 200
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            assert files.getnames() == [f"{HEAD_ID}/raylet.out", "MISSING.txt"]
            missing = files.extractfile("MISSING.txt")
            assert missing is not None
            assert b"sparse.out was left out: 281474976710656 of its 281474976710662 bytes" in missing.read()
        check_the_others_noticed_nothing(server)


async def test_polled_answers_of_millions_of_nothings_are_damaged_and_no_memory(tmp_path: Path) -> None:
    """35 million empty objects in some kilobytes: five gigabytes, and a minute without an answer to anybody."""
    store = local_store(tmp_path / "store")
    honest, hostile = await put_ended_session(store), await put_ended_session(store, HOSTILE)
    shapes = {
        "/api/jobs/": (b"[", b"{}]"),
        "/nodes?view=summary": (b'{"data":{"summary":[', b"{}]}}"),
        "/api/v0/placement_groups?detail=1&limit=10000": (b'{"data":{"result":{"result":[', b"{}]}}}"),
    }
    for path, (opening, closing) in shapes.items():
        for number, count in enumerate((600_000, 35_000_000)):
            head = b'{"path":"%s","polled_at":"2026-11-15T20:00:00Z","status":200,"body":' % path.encode()
            body = repeated_under_zstd(b"{}," * 10_000, count // 10_000, head + opening, closing + b"}")
            key = PolledKey(HOSTILE if number else SESSION, path, 10**12)
            await store.put(key.key, body)
    pages = ("/report", "/api/jobs/", "/nodes?view=summary", "/api/v0/placement_groups", "/api/v0/nodes", "")
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        for prefix in (hostile, honest):
            answered = {page: (await server.get(prefix + page))[0] for page in pages}
            assert not {page: status for page, status in answered.items() if status == 500}
        assert (await server.get("/jobs"))[0] == 200
        check_the_others_noticed_nothing(server)


async def test_packs_of_more_pieces_than_any_have_are_damaged_and_no_memory(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_session(store)
    pack = encode_index(PackIndex(tuple(Frame("f", "1-1", number, 1, 0, 1, 5) for number in range(300_000))))
    assert len(pack) < 600_000
    for number in range(30):
        await store.put(LogPackKey(SESSION, HEAD_ID, SEALED_NS - 10**9 * number, 0).key, pack)
    builder = PackBuilder(store, sequence=7)
    builder.add("raylet.out", b"fine\n")
    await builder.put()
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        logs = f"{session_url()}/api/v0/logs"
        _, listed = await server.get(f"{logs}?node_id={HEAD_ID}")
        assert b"30 log pack(s) could not be read" in listed
        assert await server.get(f"{logs}/file?node_id={HEAD_ID}&filename=raylet.out") == (200, b"fine\n")
        check_the_others_noticed_nothing(server)


async def test_facts_of_kubernetes_of_a_gigabyte_are_cut_and_no_memory(tmp_path: Path) -> None:
    """900 MB of lines in 100 KB: 2.4 GB, and nobody else was answered for 17 s."""
    store = local_store(tmp_path / "store")
    await put_session(store)
    uid = "11111111-2222-3333-4444-555555555555"
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    record = SessionRecord(**names, started_at=STARTED_AT, recorded_at=STARTED_AT, cluster_uid=uid)
    await store.put(session_record_key(SESSION), encode_record(record))
    line = b'{"kind":"loss","at":"2026-11-15T20:00:00Z","pods":1}\n' * 20_000
    key = KubeFactsKey(SESSION.namespace, SESSION.cluster, uid, SEALED_NS).key
    await store.put(key, repeated_under_zstd(line, 900))
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        assert (await server.get(f"{session_url()}/report"))[0] == 200
        check_the_others_noticed_nothing(server)


async def test_a_session_of_millions_of_lines_keeps_no_other_namespace_waiting(tmp_path: Path) -> None:
    """Five segments of 86 KB with 300 million lines each: minutes in which no other session could be opened."""
    store = local_store(tmp_path / "store")
    honest, hostile = await put_ended_session(store), await put_ended_session(store, HOSTILE)
    bomb = repeated_under_zstd(b"{}\n" * (1 << 20), 300)
    assert len(bomb) < 200_000
    for number in range(1, 6):
        await put_object(store, HOSTILE, bomb, number)
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        opening = asyncio.create_task(server.get(f"{hostile}/api/v0/tasks?limit=1"))
        await until(lambda: server.replica.is_ingesting)
        status, body = await asyncio.wait_for(server.get(f"{honest}/api/v0/tasks?limit=1"), 30 * BUSY_FACTOR)
        assert (status, msgspec.json.decode(body)["data"]["result"]["total"]) == (200, TASKS)
        assert (await opening)[0] == 200
        check_the_others_noticed_nothing(server)


@pytest.mark.parametrize("length", [3_000, 60_000])
async def test_a_glob_of_many_any_folders_stops_nobody(length: int, tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_session(store)
    builder = PackBuilder(store)
    for number in range(40):
        builder.add(f"a/b/c/worker-{number}.out", b"line\n")
    await builder.put()
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        pattern = "/".join(["**"] * (length // 3))
        status, _ = await server.get(f"{session_url()}/api/v0/logs?node_id={HEAD_ID}&glob={pattern}")
        assert status == 500, "as Ray answers a pattern that is none"
        check_the_others_noticed_nothing(server)


def test_runs_of_any_folders_mean_one() -> None:
    paths = ["a.out", "b/c.out", "b/d/e.out"]
    assert matching_names(paths, "**/**/**/*.out") == matching_names(paths, "**/*.out") == paths
    with pytest.raises(InvalidPattern, match="more than 300 characters"):
        matching_names(paths, "*" * 301)


def test_a_line_is_cut_at_its_bound_and_its_neighbours_are_whole() -> None:
    long = b"x" * (LINE_LIMIT_BYTES + 5)
    assert list(read_lines(compress_lines([b"one", long, b"two"]))) == [b"one", long[:LINE_LIMIT_BYTES], b"two"]


def test_a_segment_is_read_up_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raykeeper.layout.segments.TEXT_LIMIT_BYTES", 1 << 20)
    read = list[bytes]()

    def take(lines: Iterator[bytes]) -> None:
        for line in lines:
            read.append(line)

    with pytest.raises(TornSegment, match="more than 1048576 bytes of text"):
        take(read_lines(compress_lines([b"y" * 1000] * 2000)))
    assert 500 < len(read) <= 1048


@pytest.mark.parametrize("name", ["..\\..\\evil.bat", "C:\\evil.bat", "a/D:evil", "\\\\host\\share"])
async def test_an_archive_leaves_out_names_that_windows_takes_for_other_folders(name: str, tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    builder = PackBuilder(scene.store)
    builder.add(name, b"bad\n")
    await builder.put()
    archive = await ask(scene.app, f"{session_url()}/api/v0/logs/archive")
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as files:
        assert files.getnames() == ["MISSING.txt"]
