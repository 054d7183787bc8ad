"""Which HTTP proxy stands between us and the API server. Decided once, when a connection is loaded: asking the
environment at every request makes a request three times as expensive."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from raykeeper.errors import Misconfigured

_DEFAULT_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY (HTTP_PROXY for a plain server) names, unless NO_PROXY excepts the server."""
    url = urlsplit(server)
    name = f"{url.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    if not proxy or is_excepted(url.hostname or "", url.port or _DEFAULT_PORTS.get(url.scheme, 0), environment):
        return None
    return usable_proxy(proxy if "://" in proxy else f"http://{proxy}", name.upper())


def usable_proxy(proxy: str, setting: str) -> str:
    """The proxy itself, where it is of a kind that we can talk to."""
    if urlsplit(proxy).scheme not in _DEFAULT_PORTS:
        raise Misconfigured(setting, proxy, "only http:// and https:// proxies can be used")
    return proxy


def is_excepted(host: str, port: int, environment: Mapping[str, str]) -> bool:
    """Whether NO_PROXY covers the host, read as Go reads it: networks count, and loopback never goes by a proxy."""
    if host == "localhost" or _is_loopback(host):
        return True
    entries = (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(",")
    return any(_covers(entry.strip().lower(), host.lower(), port) for entry in entries)


def _covers(entry: str, host: str, port: int) -> bool:
    if entry in ("", "*"):
        return entry == "*"
    if _is_address(host):
        return _covers_address(entry, host, port)
    name, _, wanted_port = entry.partition(":")
    if wanted_port and wanted_port != str(port):
        return False
    name = name.removeprefix("*")
    # ".svc" means names below it, "svc" also the name itself.
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _covers_address(entry: str, host: str, port: int) -> bool:
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return entry in (f"{host}:{port}", f"[{host}]:{port}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_loopback
