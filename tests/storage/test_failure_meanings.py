"""What opendal's exceptions mean, decided from class and text; and the small decisions beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.storage.clockoffset import clock_offset
from raykeeper.storage.patience import Patience
from raykeeper.storage.remote.failures import Meaning, parse_failure

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def answered(kind: str, status: int, words: str = "") -> str:
    return (
        f"{kind} (permanent) at read => {words}\n\nContext:\n   response: Parts {{ status: {status}, version: HTTP/1.1"
    )


@pytest.mark.parametrize(
    ("kind", "text", "meaning"),
    [
        ("NotFound", answered("NotFound", 404), Meaning.MISSING),
        ("NotFound", answered("NotFound", 404, 'AzblobError { code: "ContainerNotFound", m'), Meaning.NO_BUCKET),
        ("ConfigInvalid", answered("ConfigInvalid", 404, 'S3Error { code: "NoSuchBucket"'), Meaning.NO_BUCKET),
        ("PermissionDenied", answered("PermissionDenied", 403), Meaning.REFUSED),
        ("Unexpected", answered("Unexpected", 400, "bad request"), Meaning.REFUSED),
        ("Unexpected", answered("Unexpected", 400, 'S3Error { code: "IncompleteBody", m'), Meaning.UNAVAILABLE),
        ("Unexpected", answered("Unexpected", 400, 'S3Error { code: "RequestTimeout", m'), Meaning.UNAVAILABLE),
        ("Unexpected", answered("Unexpected", 503), Meaning.UNAVAILABLE),
        ("Unexpected", answered("Unexpected", 501, "NotImplemented"), Meaning.NOT_OFFERED),
        ("RateLimited", answered("RateLimited", 429), Meaning.UNAVAILABLE),
        ("Conflict", answered("Conflict", 409), Meaning.UNAVAILABLE),
        ("ConditionNotMatch", answered("ConditionNotMatch", 412), Meaning.THERE_ALREADY),
        ("RangeNotSatisfied", answered("RangeNotSatisfied", 416), Meaning.PAST_THE_END),
        ("Unexpected", "Unexpected (permanent) at  => reader got too little data", Meaning.PAST_THE_END),
        ("Unexpected", "Unexpected (temporary) at read => io operation timeout reached", Meaning.UNAVAILABLE),
        ("OSError", "PermissionDenied (persistent) at write, context: { a: b } => no", Meaning.REFUSED),
    ],
)
def test_an_exception_has_one_meaning(kind: str, text: str, meaning: Meaning) -> None:
    assert parse_failure(kind, text, of_object=True).meaning is meaning


def test_a_write_that_finds_nothing_lacks_its_bucket() -> None:
    assert parse_failure("NotFound", answered("NotFound", 404), of_object=False).meaning is Meaning.NO_BUCKET


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('X (permanent) at write => S3Error { code: "AccessDenied", message: "No.", r', "AccessDenied: No."),
        (
            "X (temporary) at write => send\n\nContext:\n   url: https://h/?sig=abc\n\nSource:\n   refused\n",
            "send: refused",
        ),
        ("X (persistent) at write, context: { uri: https://h/?sig=abc } => send, source: refused", "send: refused"),
        (answered("X", 500), "status 500"),
        ("X (permanent) at write => a-secret was wrong", "… was wrong"),
    ],
)
def test_the_cause_is_the_servers_words_without_address_or_secret(text: str, cause: str) -> None:
    assert parse_failure("X", text, of_object=True, secrets=["a-secret"]).cause == cause


def test_pauses_grow_are_spread_and_end() -> None:
    pauses = Patience(longest_pause_seconds=1.0).pauses
    assert [pauses.delay(attempt, max) for attempt in range(1, 6)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert pauses.delay(4, min) == 0.0


def test_a_large_body_may_take_longer() -> None:
    patience = Patience(first_byte_seconds=5.0, bytes_per_second=1_000_000)
    assert patience.transfer_seconds(0) == 5.0
    assert patience.transfer_seconds(8_000_000) == 13.0


def test_a_fine_time_tells_the_offset_within_the_requests_duration() -> None:
    modified = NOON + timedelta(seconds=60, milliseconds=500)
    offset = clock_offset(modified, sent=NOON, answered=NOON + timedelta(seconds=1))
    assert (offset.seconds, offset.error_seconds) == (60.0, 0.5)
    assert offset.at_store(NOON) == NOON + timedelta(minutes=1)


def test_a_time_in_whole_seconds_may_be_a_second_later() -> None:
    offset = clock_offset(NOON, sent=NOON, answered=NOON)
    assert (offset.seconds, offset.error_seconds) == (0.5, 0.5)
