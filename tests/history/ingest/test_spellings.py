"""Ray's events in the names of its protobuf say what they say in the usual ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from raykeeper.rayevents.spelling import in_usual_names
from support.ingest_scene import LocalTables, Row, segment
from support.raycapture import ASKED_AT, NODES, RayCapture

HUMP = re.compile(r"([A-Z])")
PEOPLES_WORDS = (
    *("labels", "resources", "requiredResources", "labelSelector", "metadata", "refIds", "customFields"),
    *("unitResources", "customResources"),
)
TABLES = ("tasks", "actors", "jobs", "nodes", "workers", "counters")


def in_protobuf_names(value: Any) -> Any:
    if isinstance(value, list):
        return [in_protobuf_names(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        HUMP.sub(r"_\1", name).lower(): part if name in PEOPLES_WORDS else in_protobuf_names(part)
        for name, part in value.items()
    }


def tables_of(folder: Path, segments: list[bytes]) -> dict[str, list[Row]]:
    folder.mkdir()
    made = LocalTables(folder)
    gaps = made.add(segments).gaps
    made.merge()
    made.close()
    assert gaps == ()
    return {name: made.rows(name) for name in TABLES}


def test_the_recorded_run_makes_the_same_tables_in_either_spelling(raycapture: RayCapture, tmp_path: Path) -> None:
    events = [list(raycapture.events(node, ASKED_AT["final"])) for node in NODES]
    usual = tables_of(tmp_path / "usual", [segment(of_node) for of_node in events])
    others = [segment(map(in_protobuf_names, events[0])), segment(events[1])]
    assert tables_of(tmp_path / "other", others) == usual
    assert sum(row["odd_events"] for row in usual["counters"]) == 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"eventType":"X","event_type":"X"}',
        b'{"event_type": "X',
        b'["event_type"]',
        b'{"event_type":' + b"[" * 100_000,
    ],
    ids=["usual", "cut", "no object", "too deep"],
)
def test_what_cannot_be_respelled_stays_as_it_is(line: bytes) -> None:
    assert in_usual_names(line) == line
