"""Which error an answer becomes, and which answers are worth asking again for."""

from __future__ import annotations

import msgspec
import pytest

from raykeeper.errors import Unavailable
from raykeeper.kube import errors
from raykeeper.kube.http.answers import MAX_ATTEMPTS, Answer, error_of, is_own_refusal, parse_status, retry_delay


def refusal(status: int, reason: str = "", message: str = "no", **headers: str) -> Answer:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (415, "UnsupportedMediaType", errors.BadRequest),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (418, "", errors.ApiError),
    ],
)
def test_a_refusal_becomes_the_error_of_its_status_and_reason(
    status: int, reason: str, kind: type[errors.ApiError]
) -> None:
    error = error_of("the API", "get pods a/b", refusal(status, reason))
    assert type(error) is kind
    assert str(error).startswith(f"get pods a/b: {status} ")


def test_a_server_error_is_unavailable_and_says_when_to_come_back() -> None:
    error = error_of("the API", "get pods a/b", refusal(500, "InternalError", "etcd is gone", Retry_After="7"))
    assert isinstance(error, Unavailable)
    assert str(error) == "the API: get pods a/b: 500 InternalError: etcd is gone"
    assert error.retry_after == 7


def test_the_page_of_a_load_balancer_is_quoted_by_its_first_line() -> None:
    error = error_of("the API", "get pods a/b", Answer(502, {}, b"<html>bad gateway\n<p>..."))
    assert str(error) == "the API: get pods a/b: 502 Bad Gateway: <html>bad gateway"


def test_a_pause_named_only_in_the_body_counts_too() -> None:
    body = b'{"kind":"Status","status":"Failure","reason":"ServerTimeout","details":{"retryAfterSeconds":3}}'
    error = error_of("the API", "list pods", Answer(504, {}, body))
    assert isinstance(error, Unavailable)
    assert error.retry_after == 3


@pytest.mark.parametrize(
    ("method", "answer", "delay"),
    [
        ("POST", refusal(429, Retry_After="2"), 2),
        ("POST", refusal(429), 1),
        ("POST", refusal(503, Retry_After="2"), 2),
        ("POST", refusal(503), None),
        ("POST", refusal(500, Retry_After="2"), None),
        ("GET", refusal(500, Retry_After="2"), 2),
        ("GET", refusal(500), None),
        ("GET", refusal(429, Retry_After="3600"), None),
        ("GET", refusal(404, Retry_After="1"), None),
        ("GET", refusal(429, Retry_After="soon"), 1),
    ],
)
def test_only_what_is_safe_and_asked_for_is_sent_again(method: str, answer: Answer, delay: float | None) -> None:
    assert retry_delay(method, answer, attempts=1) == delay


def test_after_ten_attempts_the_refusal_stands() -> None:
    assert retry_delay("GET", refusal(429), MAX_ATTEMPTS - 1) is not None
    assert retry_delay("GET", refusal(429), MAX_ATTEMPTS) is None


@pytest.mark.parametrize("body", [b"", b"not found", b'{"detail": "no such job"}', b"[]", b'{"kind": "Status"'])
def test_what_is_not_a_status_belongs_to_the_server_behind_the_proxy(body: bytes) -> None:
    assert parse_status(body) is None
    assert not is_own_refusal(Answer(404, {}, body))


def test_a_status_and_the_words_of_full_queues_are_the_api_servers_own() -> None:
    assert is_own_refusal(refusal(404, "NotFound"))
    assert is_own_refusal(Answer(429, {}, b"Too many requests, please try again later.\n"))
