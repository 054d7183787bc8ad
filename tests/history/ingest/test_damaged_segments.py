"""Bad data is counted and shown, and never takes its neighbours with it."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
import zstandard

from bed.waiting import BUSY_FACTOR
from raykeeper.history.ingest import project
from raykeeper.history.ingest.event_lines import fits
from raykeeper.history.ingest.messages import Gap
from raykeeper.layout.segments import compress_lines, is_whole
from support.ingest_scene import LocalTables, definition, finished_task, lifecycle, segment, task_id
from support.raycapture import ASKED_AT, NODES, RayCapture

GOOD = [segment(finished_task(number)) for number in range(3)]


def ingested(folder: Path, segments: list[bytes]) -> tuple[tuple[Gap, ...], set[str]]:
    made = LocalTables(folder)
    gaps = made.add(segments).gaps
    made.merge()
    made.close()
    return gaps, {row["task_id"] for row in made.rows("tasks")}


def lines(*texts: bytes) -> bytes:
    encoded = [msgspec.json.encode(item) for item in finished_task(7)]
    return compress_lines([encoded[0], *texts, *encoded[1:]])


ALL = {task_id(number) for number in (0, 1, 2, 7)}


@pytest.mark.parametrize(
    "bad",
    [
        b"{not json",
        b"[1, 2]",
        b'"text"',
        b"\xff\xfe",
        msgspec.json.encode(lifecycle(task_id(8), [("RUNNING", 1)], workerPid="many")),
        msgspec.json.encode(lifecycle(task_id(8), [], stateTransitions=[{"state": "RUNNING", "timestamp": "soon"}])),
        msgspec.json.encode(definition(task_id(8)) | {"taskDefinitionEvent": {"taskId": "!!!"}}),
        msgspec.json.encode(definition(task_id(8)) | {"taskDefinitionEvent": 5}),
        msgspec.json.encode(definition(task_id(8)) | {"nodeDefinitionEvent": {"startTimestamp": "?"}}),
        b'{"eventType":"TASK_LIFECYCLE_EVENT","message":"' + b"x" * (40 << 20) + b'"}',
    ],
    ids=["no JSON", "list", "text", "no UTF-8", "number", "time", "base64", "no object", "of a node", "40 MB"],
)
def test_a_line_that_cannot_be_read_is_counted_and_its_neighbours_are_kept(bad: bytes, tmp_path: Path) -> None:
    gaps, tasks = ingested(tmp_path, [*GOOD, lines(bad)])
    assert gaps == (Gap("segment-3", 1, "lines that are no events of Ray"),)
    assert tasks == ALL


def test_thousands_of_bad_lines_are_told_apart_at_once(tmp_path: Path) -> None:
    """Whoever posts events can post these: 2,000 of them, 83 bytes as a segment, took minutes of the one ingest."""
    bad = [msgspec.json.encode(definition(task_id(8)) | {"taskDefinitionEvent": 5}), b'{"taskLifecycleEvent": []}']
    began = time.process_time()
    gaps, tasks = ingested(tmp_path, [*GOOD, lines(*(bad * 1000))])
    assert gaps == (Gap("segment-3", 2000, "lines that are no events of Ray"),)
    assert tasks == ALL
    assert time.process_time() - began < 10 * BUSY_FACTOR


def test_every_recorded_event_has_the_types_of_the_statement(raycapture: RayCapture) -> None:
    events = [event for node in NODES for event in raycapture.events(node, ASKED_AT["final"])]
    assert len(events) > 1000
    assert [event for event in events if not fits(msgspec.json.encode(event))] == []


def test_a_batch_of_far_more_text_than_its_size_is_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "_SMALL_TEXT_BYTES", 1 << 20)
    monkeypatch.setattr(project, "CLEANED_LINES", 1000)
    gaps, tasks = ingested(tmp_path, [*GOOD, compress_lines([b"{}"] * 2_000_000)])
    assert [(gap.key, gap.reason.split(",")[0]) for gap in gaps] == [
        ("segment-3", "damaged: it holds far more text than its size lets expect")
    ]
    assert tasks == {task_id(number) for number in (0, 1, 2)}


def test_a_segment_that_was_cut_gives_its_whole_lines_and_a_gap(tmp_path: Path) -> None:
    many = segment(item for number in range(10, 4000) for item in finished_task(number))
    gaps, tasks = ingested(tmp_path, [GOOD[0], many[: len(many) * 2 // 3], GOOD[1]])
    assert [(gap.key, gap.reason.split(":")[0]) for gap in gaps] == [("segment-1", "damaged")]
    assert {task_id(0), task_id(1)} < tasks
    assert 1000 < len(tasks) < 3990


def test_a_segment_whose_bytes_changed_is_a_gap(tmp_path: Path) -> None:
    broken = bytearray(GOOD[1])
    broken[len(broken) // 2] ^= 0xFF
    gaps, tasks = ingested(tmp_path, [GOOD[0], bytes(broken), GOOD[2]])
    assert [gap.key for gap in gaps] == ["segment-1"]
    assert tasks >= {task_id(0), task_id(2)}


def test_a_segment_that_is_no_zstd_is_a_gap(tmp_path: Path) -> None:
    gaps, tasks = ingested(tmp_path, [GOOD[0], b"gzip, perhaps", GOOD[2]])
    assert [gap.key for gap in gaps] == ["segment-1"]
    assert tasks == {task_id(0), task_id(2)}


def test_events_of_unknown_types_are_counted_and_those_without_their_payload_are_odd(tmp_path: Path) -> None:
    made = LocalTables(tmp_path)
    made.add([segment([{"eventType": "PLATFORM_EVENT"}, {"eventType": "TASK_LIFECYCLE_EVENT"}, *finished_task(1)])])
    made.merge()
    made.close()
    counted = {row["event_type"]: (row["events"], row["odd_events"]) for row in made.rows("counters")}
    assert counted["PLATFORM_EVENT"] == (1, 0)
    assert counted["TASK_LIFECYCLE_EVENT"] == (3, 1)
    assert counted["TASK_DEFINITION_EVENT"] == (1, 0)


@pytest.mark.parametrize("writes_checksum", [True, False])
@pytest.mark.parametrize("writes_size", [True, False])
def test_every_cut_of_a_frame_is_seen_from_its_headers(writes_checksum: bool, writes_size: bool) -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=writes_checksum, write_content_size=writes_size)
    frame = compressor.compress(bytes(range(256)) * 3 + b"a" * 300_000)
    two = frame + frame
    assert is_whole(two, 0, len(two))
    assert [end for end in range(1, len(two)) if is_whole(two, 0, end)] == [len(frame)]
