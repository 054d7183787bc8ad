"""Records are small JSON that a later version may extend."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from raykeeper.layout.records import (
    Delivery,
    NodeRecord,
    PolledAnswer,
    SessionRecord,
    decode_record,
    encode_record,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_record_comes_back_as_it_was() -> None:
    record = NodeRecord(
        node_id="ab",
        role="head",
        started_at=NOON,
        beat_at=NOON,
        interval_seconds=30,
        delivery=Delivery(events_accepted=3),
    )
    assert decode_record(encode_record(record), NodeRecord) == record


def test_fields_of_a_later_version_are_ignored() -> None:
    text = b'{"namespace":"a","cluster":"b","session":"c","started_at":"2026-11-15T12:00:00Z",'
    text += b'"recorded_at":"2026-11-15T12:00:00Z","colour":"blue"}'
    assert decode_record(text, SessionRecord).cluster == "b"


def test_a_record_without_what_every_version_wrote_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="namespace"):
        decode_record(b"{}", SessionRecord)


def test_a_polled_answer_keeps_the_body_byte_for_byte() -> None:
    body = b'{"b": 1.50, "a" : [ ]}'
    answer = PolledAnswer(path="/api/jobs/", polled_at=NOON, status=200, body=msgspec.Raw(body))
    assert bytes(decode_record(encode_record(answer), PolledAnswer).body) == body
