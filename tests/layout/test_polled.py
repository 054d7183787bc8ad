"""Polled answers as objects."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from raykeeper.layout.names import to_segment
from raykeeper.layout.polled import (
    TEXT_LIMIT_BYTES,
    DamagedAnswer,
    decode_polled,
    encode_polled,
    polled_body,
    polled_name,
)
from raykeeper.layout.records import PolledAnswer

AT = datetime(2026, 11, 15, 20, 9, 58, 472000, tzinfo=UTC)


@pytest.mark.parametrize("body", [b'{"a":  [1, 2.50, "\\u00e9"]}', b"[]", b'"text"', b"null", b"12345678901234567890"])
def test_json_comes_back_byte_for_byte(body: bytes) -> None:
    answer = PolledAnswer(path="/x", polled_at=AT, status=200, body=polled_body(body))
    stored = decode_polled(encode_polled(answer))
    assert (bytes(stored.body), stored.path, stored.polled_at, stored.status) == (body, "/x", AT, 200)


@pytest.mark.parametrize(
    ("body", "text"), [(b"", '""'), (b"{", '"{"'), (b'{"a": NaN}', '"{\\"a\\": NaN}"'), (b'"\xff"', '"\\"\ufffd\\""')]
)
def test_what_is_no_json_comes_back_as_text(body: bytes, text: str) -> None:
    answer = PolledAnswer(path="/x", polled_at=AT, status=200, body=polled_body(body))
    assert bytes(decode_polled(encode_polled(answer)).body).decode() == text


def test_json_that_is_nested_too_deeply_to_be_read_comes_back_as_text() -> None:
    body = b"[" * 5000 + b"]" * 5000
    answer = PolledAnswer(path="/x", polled_at=AT, status=200, body=polled_body(body))
    assert bytes(decode_polled(encode_polled(answer)).body) == b'"%b"' % body


def test_a_record_that_is_nested_too_deeply_is_damaged() -> None:
    body = msgspec.Raw(b"[" * 5000 + b"]" * 5000)
    with pytest.raises(DamagedAnswer):
        decode_polled(encode_polled(PolledAnswer(path="/x", polled_at=AT, status=200, body=body)))


@pytest.mark.parametrize("path", ["/timezone", "/api/v0/placement_groups?detail=1&limit=10000"])
def test_a_path_is_its_own_name(path: str) -> None:
    assert polled_name(path) == path


def test_the_name_of_a_long_path_fits_a_file_name_and_is_its_own() -> None:
    paths = [f"/api/v0/tasks?detail=1&filter_values={'x/' * 300}{number}" for number in range(3)]
    names = {polled_name(path) for path in paths}
    assert len(names) == 3
    assert all(len(to_segment(name)) <= 255 and name.startswith("/api/v0/tasks?") for name in names)


def test_damage_is_recognised() -> None:
    whole = encode_polled(PolledAnswer(path="/x", polled_at=AT, status=200))
    for damaged in (b"", b"{}", whole[:-3]):
        with pytest.raises(DamagedAnswer):
            decode_polled(damaged)


def test_an_answer_of_more_elements_than_ray_has_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """35 million empty objects are a few kilobytes in a bucket, and five gigabytes in memory."""
    monkeypatch.setattr("raykeeper.layout.polled.ELEMENT_LIMIT", 1000)
    for body, is_readable in ((b"[" + b"{}," * 400 + b"{}]", True), (b"[" + b"{}," * 600 + b"{}]", False)):
        answer = PolledAnswer(path="/api/jobs/", polled_at=datetime.now(UTC), status=200, body=msgspec.Raw(body))
        if is_readable:
            assert decode_polled(encode_polled(answer)).path == "/api/jobs/"
        else:
            with pytest.raises(DamagedAnswer, match="more than 1000 elements"):
                decode_polled(encode_polled(answer))


def test_a_text_that_is_no_json_is_kept_in_part() -> None:
    kept = msgspec.json.decode(polled_body(b"\xff" * (TEXT_LIMIT_BYTES + 10)))
    assert kept == "\N{REPLACEMENT CHARACTER}" * TEXT_LIMIT_BYTES
