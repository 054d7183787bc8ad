"""Single objects of KubeRay's layout: what keys say, and what files read as in our layout."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bed.waiting import BUSY_FACTOR
from raykeeper.history.store.kuberay.contents import adapt_session
from raykeeper.history.store.kuberay.keys import (
    KNOWN_PATHS,
    EventFile,
    FetchedAnswer,
    KubeRayPlace,
    LogFile,
    parse_marker,
    parse_object,
    possible_places,
    to_path,
    to_stored_name,
)
from raykeeper.history.store.kuberay.nodes import trace_session
from raykeeper.history.store.kuberay.objects import (
    BLOCK_BYTES,
    FRAME_BYTES,
    MAX_LOG_BYTES,
    AdaptedLog,
    RawPack,
    SegmentMaker,
    raw_frame,
    raw_frame_size,
)
from raykeeper.layout.keys import EventSegmentKey, LogPackKey, parse_sealed_key
from raykeeper.layout.packs import FILE_LIMIT_BYTES, parse_index, read_frame
from raykeeper.layout.segments import TornSegment, read_lines
from raykeeper.storage.store import ObjectStat
from support.ingest_scene import local_store
from support.kuberay_buckets import OF_A_JOB, OF_A_SERVICE, OPENED_NS, PLACES, PLAIN, to_event_file

NODE, OTHER = "aa" * 28, "bb" * 28
THEN = datetime(2026, 11, 15, 20, 15, tzinfo=UTC)


@pytest.mark.parametrize("place", PLACES)
def test_a_marker_tells_where_its_session_is(place: KubeRayPlace) -> None:
    assert parse_marker(place.marker_key) == place
    assert place.started_at == datetime(2026, 11, 15, 20, 9, 58, 472817, tzinfo=UTC)
    assert place.session.cluster in place.prefix


@pytest.mark.parametrize("place", PLACES)
def test_a_session_without_a_marker_is_looked_for_where_it_is(place: KubeRayPlace) -> None:
    assert place in possible_places(place.session)
    assert len(possible_places(place.session)) <= 5


@pytest.mark.parametrize(
    "key",
    [
        "cluster-metadata/raycluster/a_b",
        "cluster-metadata/raycluster/a_b/notes.txt",
        "cluster-metadata/raycluster/a_b/session_2026-13-15_20-09-58_472817",
        "cluster-metadata/raycluster/a_b_c/session_2026-11-15_20-09-58_472817",
        "cluster-metadata/rayjob/a_b/session_2026-11-15_20-09-58_472817",
        "cluster-metadata/raycluster/.._b/session_2026-11-15_20-09-58_472817",
        "cluster-metadata/raycluster/alone/session_2026-11-15_20-09-58_472817",
        "cluster-metadata/daskjob/a_j_b/session_2026-11-15_20-09-58_472817",
    ],
)
def test_what_is_no_marker_names_no_session(key: str) -> None:
    assert parse_marker(key) is None


@pytest.mark.parametrize(
    ("key", "means"),
    [
        (f"{NODE}/node_events/{NODE}-2026-11-15-20-{OPENED_NS}.jsonl", EventFile(NODE, OPENED_NS, True, False)),
        (f"{NODE}/job_events/01000000/x-2026-11-15-20-{OPENED_NS}.jsonl.gz", EventFile(NODE, OPENED_NS, True, True)),
        (f"{NODE}/node_events/x-2026-11-15-20", EventFile(NODE, OPENED_NS - 600 * 10**9, False, False)),
        (f"{NODE}/logs/worker-1.out", LogFile(NODE, "worker-1.out")),
        (f"{NODE}/logs/old/deep/worker-1.out", LogFile(NODE, "old/deep/worker-1.out")),
        ("fetched_endpoints/restful__timezone", FetchedAnswer("/timezone")),
        (f"{NODE}/logs/", None),
        ("fetched_endpoints/notes", None),
        (f"{NODE}/node_events/notes.txt", None),
    ],
)
def test_an_objects_key_tells_what_it_is(key: str, means: object) -> None:
    assert parse_object(key) == means


@pytest.mark.parametrize("path", [*KNOWN_PATHS, "/api/data/datasets/01000000", "/api/v0/actors?limit=7&detail=1"])
def test_the_name_of_an_answer_leads_back_to_the_path_that_was_asked(path: str) -> None:
    assert to_path(to_stored_name(path)) == path


@given(st.binary(max_size=3 * BLOCK_BYTES))
def test_an_uncompressed_frame_is_zstd_of_a_known_size(text: bytes) -> None:
    frame = raw_frame(text)
    assert len(frame) == raw_frame_size(len(text))
    assert zstandard.ZstdDecompressor().decompress(frame) == text


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, FRAME_BYTES - 1, FRAME_BYTES, 2 * FRAME_BYTES + 77])
async def test_any_range_of_a_files_pack_is_that_range_of_the_whole_pack(tmp_path: Path, size: int) -> None:
    store = local_store(tmp_path)
    text = bytes(number * 7 % 251 for number in range(1000)) * (size // 1000 + 1)
    await store.put("file", text[:size])
    raw = await store.stat("file")
    log = AdaptedLog(ObjectStat("pack", 0, THEN), raw, RawPack("file", "1-1", size, 5))
    whole = await log.read(store)
    assert len(whole) == log.pack.size
    for at in (0, 1, log.pack.frames_end - 3, log.pack.frames_end, log.pack.size - 16):
        start = max(0, at)
        assert await log.read_range(store, start, 70_000) == whole[start : start + 70_000]
    frames = parse_index(whole).frames
    read = [read_frame(frame, whole[frame.position : frame.position + frame.size]) for frame in frames]
    assert b"".join(read) == text[:size]


async def test_the_index_of_a_files_pack_costs_no_read_of_the_file() -> None:
    class Unread:
        async def read_range(self, *_: object) -> bytes:
            raise AssertionError("the file was read")

    pack = RawPack("raylet.out", "1-1", 300 * FRAME_BYTES, 5)
    log = AdaptedLog(ObjectStat("pack", pack.size, THEN), ObjectStat("raw", 1, THEN), pack)
    tail = await log.read_range(Unread(), pack.size - 64 * 1024, 64 * 1024)  # type: ignore[arg-type]  # all it may do
    assert len(parse_index(tail).frames) == 300


def test_a_log_that_says_to_be_endless_is_read_in_part() -> None:
    pack = RawPack("x" * 250, "1-1", 1 << 62, 5)
    index = parse_index(pack.ending())
    assert len(index.frames) == MAX_LOG_BYTES // FRAME_BYTES
    [gap] = index.gaps
    assert (gap.offset, gap.offset + gap.length) == (MAX_LOG_BYTES, FILE_LIMIT_BYTES)


HOSTILE_FILES = {
    "members without end": (gzip.compress(b"") * 200_000, True, "not gzip: more than 100000 members"),
    "a bomb": (gzip.compress(b"x" * (300 << 20)), True, "more than 268435456 bytes of text"),
    "an array of nothing": (b"[" + b"[]," * 5_000_000 + b"1]", False, "an array of more than 8000000 elements"),
}


@pytest.mark.parametrize("file", HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_a_file_that_was_made_to_be_slow_or_large_is_neither(file: tuple[bytes, bool, str]) -> None:
    data, is_gzip, damage = file
    began, maker = time.process_time(), SegmentMaker(is_gzip=is_gzip)
    for start in range(0, len(data), 4 << 20):
        maker.feed(data[start : start + (4 << 20)])
    assert len(maker.finish()) < 1 << 20
    assert maker.damage == damage
    assert time.process_time() - began < 5 * BUSY_FACTOR


@given(
    st.text(min_size=1, max_size=60),
    st.integers(0, 2**63),
    st.integers(0, 2000 * FRAME_BYTES),
    st.integers(0, 2**63 - 1),
)
def test_the_size_of_a_files_pack_leaves_room_for_any_index(path: str, inode: int, size: int, read_ns: int) -> None:
    pack = RawPack(path, f"{read_ns}-{inode}", size, read_ns)
    ending = pack.ending()
    assert len(ending) == pack.size - pack.frames_end
    assert parse_index(ending[-len(ending) + 64 * 1024 :]).frames == pack.frames


def segment_of(data: bytes, *, is_gzip: bool, piece: int = 7) -> tuple[list[bytes], str]:
    """The good lines, and what is damaged, of a file that comes in small pieces."""
    maker = SegmentMaker(is_gzip=is_gzip)
    for start in range(0, len(data), piece):
        maker.feed(data[start : start + piece])
    lines: list[bytes] = []
    try:
        lines.extend(read_lines(maker.finish()))
    except TornSegment:
        assert maker.damage
    return lines, maker.damage


EVENTS = [{"eventId": str(number), "text": "<\n>"} for number in range(50)]


def test_events_are_the_same_from_lines_gzip_and_array() -> None:
    found = [segment_of(to_event_file(EVENTS, form), is_gzip=form == "gzip") for form in ("lines", "gzip", "array")]
    assert [damage for _, damage in found] == ["", "", ""]
    for lines, _ in found:
        assert list(map(json.loads, lines)) == EVENTS


def test_gzip_files_that_were_joined_and_lines_without_an_end_are_read_whole() -> None:
    joined = gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"a":2}')
    assert segment_of(joined, is_gzip=True) == ([b'{"a":1}', b'{"a":2}'], "")


@pytest.mark.parametrize(
    ("data", "is_gzip", "says"),
    [
        (gzip.compress(b'{"a":1}\n' * 9, mtime=0)[:-9], True, "has no end"),
        (b"no gzip at all", True, "not gzip"),
        (b'[{"a":1},', False, "not a JSON array"),
    ],
    ids=["cut gzip", "no gzip", "cut array"],
)
def test_a_damaged_file_makes_a_segment_that_readers_find_torn(data: bytes, is_gzip: bool, says: str) -> None:
    maker = SegmentMaker(is_gzip=is_gzip)
    maker.feed(data)
    torn = maker.finish()
    assert says in maker.damage
    with pytest.raises(TornSegment):
        list(read_lines(torn))


def test_every_object_gets_a_key_of_its_own_which_does_not_depend_on_the_others() -> None:
    names = [f"{NODE}/job_events/{job:02}000000/{NODE}-2026-11-15-20.jsonl" for job in range(40)]
    names += [f"{NODE}/logs/worker-{number}.out" for number in range(500)]
    stats = [ObjectStat(f"{OF_A_JOB.prefix}{name}", 10, THEN) for name in names]
    all_keys = adapt_session(OF_A_JOB, stats).objects
    sealed = [key for key in map(parse_sealed_key, all_keys) if key]
    assert len([key for key in sealed if isinstance(key, EventSegmentKey)]) == 40
    assert len([key for key in sealed if isinstance(key, LogPackKey)]) == 500
    assert {key.node_id for key in sealed} == {NODE}
    assert set(adapt_session(OF_A_JOB, stats[::3]).objects) <= set(all_keys)
    assert list(all_keys) == sorted(all_keys)


def test_objects_that_are_none_of_kuberays_are_counted_and_left_out() -> None:
    names = ["notes.txt", f"{NODE}/logs/two\nlines.out", f"{NODE}/logs/../../x", f"{NODE}/logs/a.out", f"{NODE}/logs/"]
    contents = adapt_session(PLAIN, [ObjectStat(f"{PLAIN.prefix}{name}", 1, THEN) for name in names])
    assert contents.strange == 3
    assert [key.node_id for key in map(parse_sealed_key, contents.objects) if key] == [NODE]


def test_the_head_is_who_ran_the_gcs_or_else_who_spoke_first() -> None:
    late = EventFile(NODE, OPENED_NS + 5, True, False)
    early = EventFile(OTHER, OPENED_NS, True, False)
    running = trace_session(PLAIN, [(late, THEN), (early, THEN)])
    assert running.session_record().head_node_id == OTHER
    assert list(running.end_records()) == []
    ended = trace_session(OF_A_SERVICE, [(late, THEN), (early, THEN), (LogFile(NODE, "gcs_server.out"), THEN)])
    assert ended.session_record().head_node_id == NODE
    assert [end.node_id for end in ended.end_records()] == [NODE]


def test_logs_that_rotated_while_a_node_runs_do_not_end_it() -> None:
    rotated = LogFile(NODE, "worker-1.out.rotated.77-1000")
    assert list(trace_session(PLAIN, [(rotated, THEN)]).end_records()) == []
