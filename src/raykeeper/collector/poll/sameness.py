"""Whether an answer says anything new. Pure.

An answer that cannot be read is news as soon as a byte of it is another.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from raykeeper.collector.poll.answers import UnreadableAnswer, read_any_answer

_STATUS_HEADER = re.compile(r"^=+ Autoscaler status: .*$\n?", re.MULTILINE)  # holds the time of the answer
_LISTS = ("applications", "datasets", "train_runs")


def fingerprint(body: bytes, volatile: frozenset[str] = frozenset()) -> bytes:
    """Equal for answers that differ only in order, spacing, times of asking and `volatile` keys."""
    try:
        answer = read_any_answer(body)
        if isinstance(answer, dict):
            answer = {key: value for key, value in answer.items() if key not in volatile}
        return _digest(msgspec.json.encode(_unordered(answer)))
    except (UnreadableAnswer, RecursionError):  # the latter: nested deeper than Ray's ever is
        return _digest(body)


def says_nothing(body: bytes) -> bool:
    """Whether the list that the answer is about is empty: no Serve application, no dataset, no Train run."""
    try:
        answer = read_any_answer(body)
    except UnreadableAnswer:
        return False
    return isinstance(answer, dict) and any(key in answer and not answer[key] for key in _LISTS)


def _unordered(value: Any) -> Any:
    """The same for any order of keys, elements and lines: Ray lists nodes and jobs as its hash tables have them."""
    if isinstance(value, dict):
        return sorted((key, _unordered(inner)) for key, inner in value.items() if inner is not None)
    if isinstance(value, list):
        return sorted(msgspec.json.encode(_unordered(inner)) for inner in value)
    if isinstance(value, str) and "\n" in value:
        return sorted(_STATUS_HEADER.sub("", value).splitlines())
    return value


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
