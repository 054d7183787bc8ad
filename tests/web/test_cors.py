"""Which pages of other sites may call."""

from __future__ import annotations

import pytest

from raykeeper.web.cors import Cors


@pytest.mark.parametrize(
    ("allowed", "origin", "expected"),
    [
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "HTTPS://A.EXAMPLE", True),
        ("https://a.example", "https://a.example.evil", False),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "null", False),
        ("https://a.example", None, False),
        ("*", "https://anything", True),
        ("https://*.example.com", "https://x.example.com", True),
        ("https://*.example.com", "https://x.example.com.evil", False),
        ("https://*.example.com", "https://.example.co", False),
        ("", "https://a.example", False),
    ],
)
def test_an_origin_is_allowed_as_it_was_said(allowed: str, origin: str | None, expected: bool) -> None:
    assert Cors(allowed).allows(origin) is expected


def test_without_a_setting_nothing_is_said_about_it() -> None:
    cors = Cors("")
    assert not cors.is_preflight("OPTIONS", {"Access-Control-Request-Method": "GET", "Origin": "https://a"})
    assert cors.answer_headers({"Origin": "https://a"}) == {}


def test_any_origin_is_answered_by_a_star_and_so_without_cookies() -> None:
    headers = Cors("*").answer_headers({"Origin": "https://a"})
    assert headers == {"Vary": "Origin", "Access-Control-Allow-Origin": "*"}
    assert "Access-Control-Allow-Credentials" not in headers
