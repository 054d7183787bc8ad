"""Ids and envelopes of Ray's events."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.rayevents.envelope import parse_envelope
from raykeeper.rayevents.ids import NODE_ID_BYTES, to_base64, to_hex
from raykeeper.rayevents.kinds import EventType, payload_key, snake_payload_key


@given(st.binary(min_size=NODE_ID_BYTES, max_size=NODE_ID_BYTES).filter(lambda raw: raw != b"\xff" * NODE_ID_BYTES))
def test_an_id_keeps_its_bytes_in_both_spellings(raw: bytes) -> None:
    assert to_hex(to_base64(raw.hex()), NODE_ID_BYTES) == raw.hex()


@pytest.mark.parametrize(
    "encoded",
    ["", "AgAAAA==", to_base64("ff" * NODE_ID_BYTES), "not base64!", "ÄÖÜ", "a5" * NODE_ID_BYTES, "A" * 39],
)
def test_an_unset_nil_or_misshapen_id_is_none(encoded: str) -> None:
    assert to_hex(encoded, NODE_ID_BYTES) is None


def test_both_spellings_of_an_envelope_say_the_same() -> None:
    camel = parse_envelope(b'{"sessionName":"s","nodeId":"n","eventType":"T","payload":{"sessionName":"inner"}}')
    snake = parse_envelope(b'{"session_name":"s","node_id":"n","event_type":"T"}')
    assert (camel.session, camel.node, camel.type) == (snake.session, snake.node, snake.type) == ("s", "n", "T")


def test_a_field_that_is_no_text_counts_as_unset() -> None:
    envelope = parse_envelope(b'{"sessionName":"s","nodeId":17,"eventType":{"deep":[1]}}')
    assert (envelope.session, envelope.node, envelope.type) == ("s", "", "")


@pytest.mark.parametrize("event", [b"17", b'"text"', b"[]", b"null", b"{", b""])
def test_what_is_no_object_has_no_envelope(event: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parse_envelope(event)


def test_payload_keys_are_those_on_the_wire() -> None:
    assert payload_key(EventType.ACTOR_TASK_DEFINITION) == "actorTaskDefinitionEvent"
    assert payload_key(EventType.TASK_PROFILE) == "taskProfileEvents"
    assert snake_payload_key(EventType.DRIVER_JOB_LIFECYCLE) == "driver_job_lifecycle_event"
