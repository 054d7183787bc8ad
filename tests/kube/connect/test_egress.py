"""Which proxy the environment asks for; NO_PROXY is read as Go programs read it."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.kube.connect.egress import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://api.example", {}, None),
        ("https://api.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://api.example", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://api.example", {"HTTP_PROXY": PROXY}, None),
        ("http://api.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_the_proxy_of_the_servers_scheme_is_used(server: str, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(server, environment) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy", "excepted"),
    [
        ("https://10.96.0.1:443", "10.0.0.0/8", True),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://10.96.0.1:443", "10.96.0.1:443", True),
        ("https://10.96.0.1:443", "10.96.0.1:6443", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://11.0.0.1:443", "10.0.0.0/8,kubernetes", False),
        ("https://kubernetes.default.svc", "localhost, .svc", True),
        ("https://kubernetes.default.svc", "svc", True),
        ("https://kubernetes.default.svc", "*.svc", True),
        ("https://svc", ".svc", False),
        ("https://mysvc", "svc", False),
        ("https://api.example:6443", "api.example:443", False),
        ("https://api.example:6443", "API.example:6443", True),
        ("https://api.example", "*", True),
        ("https://api.example", "", False),
    ],
)
def test_no_proxy_excepts_names_addresses_and_networks(server: str, no_proxy: str, excepted: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_for(server, environment) == (None if excepted else PROXY)


def test_a_proxy_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(Misconfigured, match="HTTPS_PROXY='socks5://p:1080' cannot be used: only http:// and https://"):
        proxy_for("https://api.example", {"HTTPS_PROXY": "socks5://p:1080"})
