"""What is passed on, and what is about one connection alone."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from raykeeper.web.passing import end_to_end, request_head


def test_headers_about_the_connection_are_dropped_also_those_it_names() -> None:
    headers = [
        ("Connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("Keep-Alive", "5"),
        ("Transfer-Encoding", "chunked"),
        ("TE", "trailers"),
        ("Upgrade", "h2c"),
        ("Proxy-Authorization", "secret"),
        ("Authorization", "kept"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
        ("Host", "dropped"),
    ]
    kept = end_to_end(headers, without=frozenset({"host"}))
    assert kept == CIMultiDict([("Authorization", "kept"), ("Set-Cookie", "a"), ("Set-Cookie", "b")])


@pytest.mark.parametrize(
    ("target", "headers"),
    [("/a b", []), ("/a\r\nX: y", []), ("/a", [("X", "1\r\nY: 2")]), ("/a", [("X\n", "1")]), ("/a", [("X", "\0")])],
)
def test_nothing_ends_a_line_of_a_head_early(target: str, headers: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="line end"):
        request_head("GET", target, headers)


def test_a_head_is_plain_http() -> None:
    assert request_head("GET", "/a?b", [("Host", "x")]) == b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"
