"""The proxy's settings, from the variables that KubeRay's has. Pure, but for the file that holds the token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raykeeper.errors import Misconfigured
from raykeeper.logs import LogSettings
from raykeeper.securityproxy.environment import VARIABLES

SAFE_TOKEN_LENGTH = 16
"""Shorter ones can be guessed over a network. They are taken with a warning: KubeRay's examples have five digits."""
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class PortPair:
    """Where the proxy listens, and where the API server does."""

    local: int
    remote: int


@dataclass(frozen=True)
class SecurityProxySettings:
    """Everything that can be set."""

    http: PortPair
    """`HTTP_LOCAL_PORT` and `HTTP_REMOTE_PORT`."""
    grpc: PortPair | None
    """`GRPC_LOCAL_PORT` and `GRPC_REMOTE_PORT`; None unless `ENABLE_GRPC`."""
    prefix: str
    """Paths that need the token (`SECURITY_PREFIX`)."""
    token: str = field(default="", repr=False)
    """The token itself (`SECURITY_TOKEN`)."""
    token_file: Path | None = None
    """File with the token (`SECURITY_TOKEN_FILE`)."""
    cors_origin: str = ""
    """Origin whose pages may call (`RAYKEEPER_CORS_ALLOW_ORIGIN`); empty for none."""
    logs: LogSettings = field(default_factory=LogSettings)
    """The proxy's own log lines."""


def read_settings(environment: Mapping[str, str]) -> SecurityProxySettings:
    """All settings. Raises `Misconfigured` naming the first variable that cannot be used."""
    is_grpc = environment.get("ENABLE_GRPC", "").lower() == "true"
    prefix = _required(environment, "SECURITY_PREFIX")
    if not prefix.startswith("/"):
        raise Misconfigured("SECURITY_PREFIX", prefix, "it begins with a slash, as paths do")
    file = environment.get("SECURITY_TOKEN_FILE")
    return SecurityProxySettings(
        http=PortPair(_port(environment, "HTTP_LOCAL_PORT"), _port(environment, "HTTP_REMOTE_PORT")),
        grpc=PortPair(_port(environment, "GRPC_LOCAL_PORT"), _port(environment, "GRPC_REMOTE_PORT"))
        if is_grpc
        else None,
        prefix=prefix,
        token="" if file else checked_token("SECURITY_TOKEN", _required(environment, "SECURITY_TOKEN")),
        token_file=Path(file) if file else None,
        cors_origin=environment.get("RAYKEEPER_CORS_ALLOW_ORIGIN", ""),
        logs=LogSettings(level=environment.get("RAYKEEPER_LOG_LEVEL") or "info"),
    )


def _required(environment: Mapping[str, str], name: str) -> str:
    text = environment.get(name, "")
    if not text:
        raise Misconfigured(name, "", f"it is needed: {VARIABLES[name]}")
    return text


def _port(environment: Mapping[str, str], name: str) -> int:
    text = _required(environment, name)
    if not text.isdecimal() or not 0 < int(text) <= _HIGHEST_PORT:
        raise Misconfigured(name, text, "use a port between 1 and 65535")
    return int(text)


def checked_token(setting: str, text: str) -> str:
    """A token that a header can hold."""
    if not text or not text.isascii() or not text.isprintable():
        raise Misconfigured(setting, "…" if text else "", "a token is made of printable ASCII characters")
    return text
