"""The proxy's variables are KubeRay's; what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.securityproxy.main import run
from raykeeper.securityproxy.settings import PortPair, read_settings
from raykeeper.securityproxy.token import Token

FULL = {
    "HTTP_LOCAL_PORT": "8988",
    "HTTP_REMOTE_PORT": "8888",
    "GRPC_LOCAL_PORT": "8987",
    "GRPC_REMOTE_PORT": "8887",
    "ENABLE_GRPC": "True",
    "SECURITY_PREFIX": "/",
    "SECURITY_TOKEN": "12345",
}


def test_the_variables_of_kuberays_chart_are_enough() -> None:
    settings = read_settings(FULL)
    assert settings.http == PortPair(8988, 8888)
    assert settings.grpc == PortPair(8987, 8887)
    assert "12345" not in repr(settings)
    assert "12345" not in repr(Token.of(settings))


@pytest.mark.parametrize("enabled", ["", "false", "0", "yes"])
def test_grpc_is_on_by_the_word_true_alone(enabled: str) -> None:
    assert read_settings({**FULL, "ENABLE_GRPC": enabled}).grpc is None
    assert read_settings(
        {"HTTP_LOCAL_PORT": "1", "HTTP_REMOTE_PORT": "2", "SECURITY_PREFIX": "/", "SECURITY_TOKEN": "x"}
    )


@pytest.mark.parametrize("name", [name for name in FULL if name != "ENABLE_GRPC"])
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        read_settings({**FULL, name: ""})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HTTP_LOCAL_PORT", "http"),
        ("HTTP_LOCAL_PORT", "70000"),
        ("SECURITY_PREFIX", "apis"),
        ("SECURITY_TOKEN", "a\nb"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, text: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        read_settings({**FULL, name: text})


def test_a_token_file_must_hold_one(tmp_path: Path) -> None:
    missing = read_settings({**FULL, "SECURITY_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(Misconfigured, match="SECURITY_TOKEN_FILE"):
        Token.of(missing)


def test_it_takes_no_arguments() -> None:
    with pytest.raises(Misconfigured, match="environment variables"):
        run(["--token=x"], FULL)


@pytest.mark.parametrize("shown", ["", None, "12345 ", "Bearer 12345"])
def test_a_token_is_never_nearly_right(shown: str | None) -> None:
    token = Token.of(read_settings(FULL))
    assert token.admits(shown) is (shown in ("12345 ", "Bearer 12345"))
    assert not token.admits("1234")
    assert not token.admits("Bearer 123456")
    assert not token.admits("\u0661\u0662\u0663\u0664\u0665")
