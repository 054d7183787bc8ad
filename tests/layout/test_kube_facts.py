"""Segments of Kubernetes facts: what was written comes back, whatever later versions add."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from raykeeper.layout.kube_facts import (
    ClusterFact,
    ContainerFact,
    EventFact,
    KubeFact,
    LossFact,
    PodFact,
    decode_facts,
    encode_facts,
)
from raykeeper.layout.segments import compress_lines, read_lines

AT = datetime(2026, 11, 15, 19, 12, 35, 125000, tzinfo=UTC)
OOM_KILLED = ContainerFact(
    name="ray-worker", image="ray:2.60", state="terminated", reason="OOMKilled", exit_code=137, finished_at=AT
)
POD = PodFact(
    at=AT, uid="p1", name="train-workers-x", group="workers", phase="Failed", node="node-1", containers=(OOM_KILLED,)
)
EVENT = EventFact(at=AT, uid="e1", count=3, type="Warning", reason="BackOff", message="back-off", about_kind="Pod")
CLUSTER = ClusterFact(at=AT, uid="c1", name="train", owner_kind="RayJob", owner_name="nightly", deleted=True)
ALL: tuple[KubeFact, ...] = (POD, EVENT, CLUSTER, LossFact(at=AT, pods=2, events=5))


def test_facts_come_back_as_they_were_and_in_their_order() -> None:
    decoded = decode_facts(encode_facts(ALL))
    assert decoded.facts == ALL
    assert decoded.unreadable == 0


def test_a_line_says_its_kind_and_leaves_out_what_is_not_known() -> None:
    line = next(iter(read_lines(encode_facts([CLUSTER]))))
    assert msgspec.json.decode(line) == {
        "kind": "cluster",
        "at": "2026-11-15T19:12:35.125000Z",
        "uid": "c1",
        "name": "train",
        "owner_kind": "RayJob",
        "owner_name": "nightly",
        "deleted": True,
    }


def test_fields_and_kinds_of_a_later_version_are_passed_over_and_are_no_damage() -> None:
    later = [
        b'{"kind": "node", "at": "2026-11-15T19:12:35Z", "name": "node-1"}',
        b'{"kind": "loss", "at": "2026-11-15T19:12:35Z", "events": 1, "why": "storm"}',
    ]
    decoded = decode_facts(compress_lines(later))
    assert decoded.facts == (LossFact(at=AT.replace(microsecond=0), events=1),)
    assert decoded.unreadable == 0


def test_a_damaged_line_is_counted_and_its_neighbours_are_read() -> None:
    lines = [msgspec.json.encode(POD), b'{"kind": "pod", "at": "yesterday"}', b"{", msgspec.json.encode(EVENT)]
    decoded = decode_facts(compress_lines(lines))
    assert decoded.facts == (POD, EVENT)
    assert decoded.unreadable == 2


def test_of_a_torn_segment_the_whole_lines_are_read_and_the_tear_is_counted() -> None:
    whole = compress_lines([msgspec.json.encode(POD)])
    decoded = decode_facts(whole + encode_facts([EVENT])[:-2])
    assert decoded.facts[:1] == (POD,)
    assert decoded.unreadable == 1
