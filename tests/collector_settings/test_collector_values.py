"""Addresses are taken as KubeRay's users write them, IPv6 included."""

from __future__ import annotations

import pytest

from raykeeper.collector.values import parse_base_url, parse_hosts
from raykeeper.errors import Misconfigured


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("head", "http://head:8265"),
        ("head:9265", "http://head:9265"),
        ("http://head", "http://head:8265"),
        ("https://head:8443", "https://head:8443"),
        ("HTTPS://head:8443/", "https://head:8443"),
        ("10.1.2.3", "http://10.1.2.3:8265"),
        ("fd00::1", "http://[fd00::1]:8265"),  # KubeRay takes its last group for the port
        ("[fd00::1]", "http://[fd00::1]:8265"),
        ("http://[fd00::1]:9265", "http://[fd00::1]:9265"),
        ("http://gateway/clusters/demo/", "http://gateway:8265/clusters/demo"),
    ],
)
def test_a_head_is_named_with_or_without_scheme_and_port(text: str, url: str) -> None:
    assert parse_base_url("FQ_RAY_IP", text, 8265) == url


def test_an_address_without_a_port_to_add_keeps_that_of_its_scheme() -> None:
    assert parse_base_url("--ray-dashboard-address", "https://dashboard.example.org") == "https://dashboard.example.org"


@pytest.mark.parametrize(
    "text", ["", "http://", "ftp://head", "head:port", "head:70000", "a b", "http://[::1", "me@head", "head?x=1", "/x"]
)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"^FQ_RAY_IP=.* cannot be used: use an address such as http://host:8265$"):
        parse_base_url("FQ_RAY_IP", text, 8265)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("localhost", ("127.0.0.1", "::1")),
        ("127.0.0.1,localhost", ("127.0.0.1", "::1")),
        ("0:0:0:0:0:0:0:1", ("::1",)),
        (" 10.0.0.1 ,", ("10.0.0.1",)),
    ],
)
def test_addresses_to_listen_at_are_plain_and_each_there_once(text: str, hosts: tuple[str, ...]) -> None:
    assert parse_hosts("--events-bind", text) == hosts
