"""What an exception of opendal means for us. Pure: decided from the exception's class and text alone.

opendal's text has a first line `Kind (temporary) at operation => the server's words`, then a context with headers and
the URL; errors of its files have all of that in one line. Only the words and the cause of a failed connection are told
further: a URL may hold a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

_MISSING_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
# What S3, MinIO and their like say of a key that they cannot hold.
_BAD_NAME = re.compile(r"KeyTooLong|InvalidObjectName|ObjectNameTooLong|UriTooLong|File name too long")
# Status 400 like a wrong request, but said of a body that did not arrive whole or in time: a cut connection, or a MinIO
# that runs out of disk or breath while it reads. The same bytes sent again are taken.
_CUT_OFF = re.compile(r'code: "(?:IncompleteBody|RequestTimeout)"')
_STATUS = re.compile(r"response: Parts \{ status: (\d{3})")
_WORDS = re.compile(r'code: "(?P<code>[^"]*)", message: "(?P<message>[^"]*)"')
_KIND = re.compile(r"(?P<kind>\w+) \((?:temporary|persistent|permanent)\)")
_CONTEXT_IN_LINE = re.compile(r"^\w+ \(\w+\) at [^\n]*?, context: \{.*\} => ")
_SOURCE = re.compile(r"^Source:\s*(?P<source>.+)$", re.MULTILINE)
# What opendal says of a range that reaches beyond the object (the second of Azurite's answer to one that starts there).
_TOO_SHORT = re.compile(r"reader got too little data|content range is invalid: end is less than start")
_NO_CREDENTIAL = "failed to load signing credential"
_LONGEST_CAUSE = 300  # characters: an error is one line of a log


class Meaning(Enum):
    """Every way a call can fail."""

    MISSING = auto()
    THERE_ALREADY = auto()
    PAST_THE_END = auto()
    NO_BUCKET = auto()
    REFUSED = auto()
    BAD_NAME = auto()
    NOT_OFFERED = auto()
    UNAVAILABLE = auto()


@dataclass(frozen=True)
class Failure:
    """A failed attempt: what it means, and the server's words."""

    meaning: Meaning
    cause: str


_BY_KIND = {
    "ConditionNotMatch": Meaning.THERE_ALREADY,
    "AlreadyExists": Meaning.THERE_ALREADY,
    "RangeNotSatisfied": Meaning.PAST_THE_END,
    "PermissionDenied": Meaning.REFUSED,
    "ConfigInvalid": Meaning.REFUSED,
    "Unsupported": Meaning.REFUSED,
    "RateLimited": Meaning.UNAVAILABLE,
    # S3's answer to two conditional writes at the same moment: neither was refused for good.
    "Conflict": Meaning.UNAVAILABLE,
}
_NOT_IMPLEMENTED = 501
# A server's or proxy's own trouble, whatever opendal makes of it.
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


def parse_failure(kind: str, text: str, *, of_object: bool, secrets: Iterable[str] = ()) -> Failure:
    """The meaning of an exception of opendal's class `kind`, or of an `OSError` of one of its files.

    `of_object` is whether the call was about an object that need not be there: everywhere else (writes, lists) a
    store that finds nothing means that it has no such bucket.
    """
    if told := _KIND.match(text):
        kind = told["kind"]
    return Failure(_meaning(kind, text, of_object=of_object), _cause(kind, text, secrets))


def _meaning(kind: str, text: str, *, of_object: bool) -> Meaning:
    status = _status(text)
    if _MISSING_BUCKET.search(text):
        return Meaning.NO_BUCKET
    if kind == "NotFound":
        return Meaning.MISSING if of_object else Meaning.NO_BUCKET
    if status == 416 or _TOO_SHORT.search(text):
        return Meaning.PAST_THE_END
    if _BAD_NAME.search(text):
        return Meaning.BAD_NAME
    if status == _NOT_IMPLEMENTED:
        return Meaning.NOT_OFFERED
    if status in _PASSING_STATUS or _CUT_OFF.search(text):
        return Meaning.UNAVAILABLE
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    if status is not None and 400 <= status < 500:
        return Meaning.REFUSED
    return Meaning.UNAVAILABLE


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found.group(1)) if found else None


def _cause(kind: str, text: str, secrets: Iterable[str]) -> str:
    message, source = _message(text)
    cause = message or (f"status {status}" if (status := _status(text)) else kind)
    if words := _WORDS.search(message):
        cause = f"{words['code']}: {words['message']}".rstrip(": ")
    elif source:
        cause = f"{cause}: {source}"
    if _NO_CREDENTIAL in cause:
        cause = "no credentials could be had: either none are given, or the service that gives them out does not"
    for secret in secrets:
        cause = cause.replace(secret, "…")
    return cause[:_LONGEST_CAUSE]


def _message(text: str) -> tuple[str, str]:
    """The server's words and the cause of a failed connection, out of either shape of text."""
    if in_line := _CONTEXT_IN_LINE.search(text):
        message, _, source = text[in_line.end() :].partition(", source: ")
        return message, source.strip()
    first_line, _, rest = text.partition("\n")
    source_line = _SOURCE.search(rest)
    return first_line.partition(" => ")[2], source_line["source"].strip() if source_line else ""
