"""What Kubernetes accepts as a name, a label key and a label value (its `validation` package, in our words)."""

from __future__ import annotations

import re
from typing import Final

MAX_LABEL_LENGTH: Final = 63
MAX_SUBDOMAIN_LENGTH: Final = 253

_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1123_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_1035_label(text: str) -> bool:
    """Lower-case letters, digits and dashes, starting with a letter: what a Service may be called."""
    return len(text) <= MAX_LABEL_LENGTH and _DNS_1035_LABEL.fullmatch(text) is not None


def is_dns_1123_label(text: str) -> bool:
    """Lower-case letters, digits and dashes, also starting with a digit."""
    return len(text) <= MAX_LABEL_LENGTH and _DNS_1123_LABEL.fullmatch(text) is not None


def is_dns_1123_subdomain(text: str) -> bool:
    """DNS labels joined by dots: what most objects, pods among them, may be called."""
    return len(text) <= MAX_SUBDOMAIN_LENGTH and all(_DNS_1123_LABEL.fullmatch(part) for part in text.split("."))


def is_qualified_name(text: str) -> bool:
    """A label key: a name of at most 63 characters, optionally after a DNS subdomain and a slash."""
    prefix, slash, name = text.rpartition("/")
    prefix_is_valid = is_dns_1123_subdomain(prefix) if slash else True
    return prefix_is_valid and len(name) <= MAX_LABEL_LENGTH and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 letters, digits, dashes, underscores and dots, alphanumeric at both ends."""
    return text == "" or (len(text) <= MAX_LABEL_LENGTH and _LABEL_NAME.fullmatch(text) is not None)


def is_user_name(text: str) -> bool:
    """Whether a header brings this name of a user or group to Kubernetes unchanged: Go cuts spaces off at both ends."""
    return text != "" and text.isprintable() and text == text.strip()
