"""Each event is filed under the session and node that produced it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.collector.events.filing import Filer, Filing, Place, place_of_rejects
from raykeeper.collector.events.splitting import SplitBody
from raykeeper.layout.names import is_session_name
from support.event_scene import Directory
from support.ray_event_batches import NODE_HEX, SESSION, EventMaker, line_of, node_id

OTHER_NODE = "0b" * 28


def filed(*events: dict[str, Any], directory: Directory | None = None) -> Filing:
    filer = Filer(directory or Directory())
    filer.add(SplitBody([line_of(event) for event in events]), received_ns=5)
    return filer.filing


def test_events_of_two_sessions_and_nodes_interleaved_are_told_apart() -> None:
    ours, theirs = EventMaker(1), EventMaker(2, session="session_other", node=OTHER_NODE)
    events = [maker.event() for _ in range(5) for maker in (ours, theirs)]
    filing = filed(*events)
    assert filing.events == {
        Place(SESSION, NODE_HEX): [line_of(event) for event in events[::2]],
        Place("session_other", OTHER_NODE): [line_of(event) for event in events[1::2]],
    }


BAD_NODE_IDS = ["", node_id("ff" * 28), node_id("ab" * 27), "no base64", 17, None, {"a": 1}]


@pytest.mark.parametrize("bad", BAD_NODE_IDS, ids=repr)
def test_an_event_without_a_usable_node_id_is_filed_by_the_session_directory(bad: object) -> None:
    event = EventMaker().event(nodeId=bad)
    assert list(filed(event, directory=Directory({SESSION: OTHER_NODE})).events) == [Place(SESSION, OTHER_NODE)]
    assert filed(event).sessions_without_node == {SESSION}


def test_an_event_without_a_node_id_is_the_nodes_that_was_there_when_it_came() -> None:
    events = EventMaker().events(3)
    for event in events:
        del event["nodeId"]  # as in Ray 2.52
    filer = Filer(Directory({SESSION: OTHER_NODE}, replaced={SESSION: (200, NODE_HEX)}))
    for event, received_ns in zip(events, (100, 200, 300), strict=True):
        filer.add(SplitBody([line_of(event)]), received_ns)
    assert filer.filing.events == {
        Place(SESSION, NODE_HEX): [line_of(events[0])],
        Place(SESSION, OTHER_NODE): [line_of(event) for event in events[1:]],
    }


def test_node_ids_of_wrong_length_are_counted() -> None:
    assert filed(EventMaker().event(nodeId="AgAAAA==")).bad_node_ids == 1
    assert filed(EventMaker().event(nodeId="")).bad_node_ids == 0


BAD_SESSIONS = ["", ".", "..", "../../etc", "a/b", "/", "a\\b", "a b", "ä", "\x00", "a" * 129, 17, None, [], "a\n"]


@pytest.mark.parametrize("bad", BAD_SESSIONS, ids=repr)
def test_an_event_with_an_impossible_session_is_set_aside_alone(bad: object) -> None:
    maker = EventMaker()
    good, event = maker.events(3), maker.event(sessionName=bad)
    filing = filed(good[0], event, *good[1:])
    assert filing.events == {Place(SESSION, NODE_HEX): [line_of(one) for one in good]}
    assert [(piece.text, piece.received_ns) for piece in filing.set_aside] == [(line_of(event), 5)]


def test_a_platform_event_without_session_belongs_to_the_current_one() -> None:
    event = EventMaker().event(eventType="PLATFORM_EVENT", sessionName="")
    assert list(filed(event, directory=Directory(session="session_now")).events) == [Place("session_now", NODE_HEX)]
    assert [piece.reason for piece in filed(event).set_aside] == ["no session name"]


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp": "0001-01-01T00:00:00Z"},
        {"timestamp": "yesterday"},
        {"timestamp": None},
        {"timestamp": "9" * 400},
        {"eventType": "COFFEE_EVENT", "coffeeEvent": {"cups": 3}},
        {"eventType": 5},
        {"eventId": "short"},
    ],
    ids=repr,
)
def test_absurd_times_and_unknown_types_are_kept(changes: dict[str, object]) -> None:
    event = EventMaker().event(**changes)
    assert filed(event).events == {Place(SESSION, NODE_HEX): [line_of(event)]}


@pytest.mark.parametrize("element", [b"17", b"null", b'"text"', b"[]", b"[{}]"])
def test_an_element_that_is_no_object_is_set_aside(element: bytes) -> None:
    filer = Filer(Directory())
    filer.add(SplitBody([element]), 0)
    assert [(piece.reason, piece.text) for piece in filer.filing.set_aside] == [("not an object", element)]


def test_names_as_ray_writes_them_in_protobuf_are_understood() -> None:
    event = {"session_name": SESSION, "node_id": node_id(), "event_type": "NODE_LIFECYCLE_EVENT"}
    assert list(filed(event).events) == [Place(SESSION, NODE_HEX)]


def test_what_has_no_place_lies_beside_the_current_session() -> None:
    assert place_of_rejects(Directory({"now": NODE_HEX}, "now")) == Place("now", NODE_HEX)
    assert place_of_rejects(Directory()) == Place("unknown", "")


SOMETIMES = st.text(max_size=8) | st.none() | st.integers() | st.sampled_from([SESSION, node_id(), "s", ".."])


@given(st.lists(st.fixed_dictionaries({"sessionName": SOMETIMES, "nodeId": SOMETIMES, "n": st.integers()})))
def test_every_event_is_filed_once_or_set_aside_once(events: list[dict[str, Any]]) -> None:
    filing = filed(*events)
    kept = [bytes(event) for group in filing.events.values() for event in group]
    assert sorted(kept + [piece.text for piece in filing.set_aside]) == sorted(map(line_of, events))
    for place, group in filing.events.items():
        assert is_session_name(place.session)
        assert all(json.loads(bytes(event))["sessionName"] == place.session for event in group)
