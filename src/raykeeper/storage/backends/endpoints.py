"""Addresses of servers: with a scheme, and whether a bucket can be part of their host name."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from raykeeper.storage.backends.values import Given

_HOST = re.compile(r"[\w.:-]+")


def parse_endpoint(given: Given, *, tls: bool = True) -> str:
    """The URL of a server that may have been given without its scheme, without a slash at its end."""
    text = given.text if "://" in given.text else f"{'https' if tls else 'http'}://{given.text}"
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and _HOST.fullmatch(url.hostname or "") and url.port != 0
    except ValueError:  # a port that is no number, brackets that do not match
        usable = False
    if not usable or url.username or url.query or url.fragment:
        raise given.refuse("use the address of a server, such as https://s3.example.com or http://minio:9000")
    return text.rstrip("/")


def can_hold_bucket_name(endpoint: str) -> bool:
    """Whether `bucket.HOST` can be a name: not for addresses, nor for what only a cluster or a machine resolves."""
    host = urlsplit(endpoint).hostname or ""
    return not (_is_address(host) or "." not in host or host.endswith((".svc", ".svc.cluster.local", ".localhost")))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
