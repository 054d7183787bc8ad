"""Single values that only the collector's settings have. Pure; a wrong one is refused by name."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address, ip_address
from urllib.parse import urlsplit

from raykeeper.api.syntax import is_dns_1123_subdomain
from raykeeper.collector.settings import MAX_SEAL_BYTES, OwnerKind
from raykeeper.errors import Misconfigured
from raykeeper.layout.records import Role
from raykeeper.settings.values import MIB, parse_integer, parse_mebibytes

_ROLES: dict[str, Role] = {"head": "head", "worker": "worker"}
_OWNER_KINDS: dict[str, OwnerKind] = {"rayjob": "RayJob", "rayservice": "RayService"}
_HIGHEST_PORT = 65535
_LOCALHOST = ("127.0.0.1", "::1")
_HOST = re.compile(r"[^\s@/?#]+")


def parse_role(setting: str, text: str) -> Role:
    """Head or worker, in any case."""
    if text.lower() not in _ROLES:
        raise Misconfigured(setting, text, "use head or worker")
    return _ROLES[text.lower()]


def parse_owner_kind(setting: str, text: str) -> OwnerKind:
    """The kind, in any case."""
    if text.lower() not in _OWNER_KINDS:
        raise Misconfigured(setting, text, "use rayjob or rayservice, or leave it out")
    return _OWNER_KINDS[text.lower()]


def parse_object_name(setting: str, text: str) -> str:
    """The name of a Kubernetes object; outside Kubernetes the same rule keeps names fit for keys and URLs."""
    if not is_dns_1123_subdomain(text):
        raise Misconfigured(setting, text, "use lower-case letters, digits, dashes and dots, as in Kubernetes")
    return text


def parse_port(setting: str, text: str, lowest: int = 1) -> int:
    """A TCP port of somebody else."""
    number = parse_integer(setting, text)
    if not lowest <= number <= _HIGHEST_PORT:
        raise Misconfigured(setting, text, f"use a port from {lowest} to {_HIGHEST_PORT}")
    return number


def parse_own_port(setting: str, text: str) -> int:
    """A TCP port to listen at; 0 asks for a free one."""
    return parse_port(setting, text, lowest=0)


def parse_seal_size(setting: str, text: str) -> int:
    """Bytes of a segment."""
    size = parse_mebibytes(setting, text)
    if size > MAX_SEAL_BYTES:
        raise Misconfigured(setting, text, f"use at most {MAX_SEAL_BYTES // MIB}, since it is held in memory")
    return size


def parse_hosts(setting: str, text: str) -> tuple[str, ...]:
    """IP addresses in their plain form, each once; `localhost` is both of its own."""
    hosts: dict[str, None] = {}
    for part in split_list(text):
        hosts |= dict.fromkeys(_LOCALHOST if part == "localhost" else (_parse_ip(setting, part),))
    if not hosts:
        raise Misconfigured(setting, text, "name at least one IP address")
    return tuple(hosts)


def _parse_ip(setting: str, text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise Misconfigured(setting, text, "use IP addresses separated by commas, such as 127.0.0.1,::1") from None


def parse_endpoints(setting: str, text: str) -> tuple[str, ...]:
    """Paths of the dashboard, each once, in the given order."""
    paths = tuple(dict.fromkeys(split_list(text)))
    for path in paths:
        if not path.startswith("/") or not path.isprintable() or not path.isascii() or " " in path:
            raise Misconfigured(setting, path, "use paths that start with a slash, encoded, separated by commas")
    return paths


def split_list(text: str) -> list[str]:
    """The parts between commas, without blanks around them and without empty ones."""
    return [part for part in (part.strip() for part in text.split(",")) if part]


def parse_base_url(setting: str, text: str, port: int | None = None) -> str:
    """`http://host:port`, and a path if there is one, without a slash at the end; http where no scheme is given.

    `port` is added where the text has none. An IPv6 address may stand without brackets.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    rest = f"[{rest}]" if _is_ipv6(rest) else rest
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        has_port = parts.port is not None
    except ValueError:
        raise _no_address(setting, text) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HOST.fullmatch(parts.netloc):
        raise _no_address(setting, text)
    if parts.query or parts.fragment:
        raise _no_address(setting, text)
    suffix = "" if has_port or port is None else f":{port}"
    return f"{parts.scheme}://{parts.netloc}{suffix}{parts.path.rstrip('/')}"


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _no_address(setting: str, text: str) -> Misconfigured:
    return Misconfigured(setting, text, "use an address such as http://host:8265")
