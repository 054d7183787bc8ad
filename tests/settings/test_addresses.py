"""Addresses as Go programs write them."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address(None, 8080)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:8080", Address("::1", 8080)),
        ("[::]:65535", Address("::", 65535)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        ("", None),
        ("0", None),
    ],
)
def test_an_address_is_read_as_go_reads_it(text: str, address: Address | None) -> None:
    assert parse_address("metrics address", text) == address


@pytest.mark.parametrize("text", ["8080", "localhost", "::1:8080", ":http", ":65536", ":-1", "a b:80", "[::1]", ":٣"])
def test_what_is_no_address_stops_by_name(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"metrics address=.* cannot be used: use host:port"):
        parse_address("metrics address", text)
