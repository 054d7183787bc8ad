"""What a request to `/api/v0/logs/file` and `/stream` asks for, read as Ray reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from raykeeper.history.errors import Unanswerable

_CODE = re.compile(rb"\x1b\x5b[(\x30-\x39)\x3b]+\x6d")
"""Ray's own pattern, which takes colours alone: what `filter_ansi_code` leaves is what Ray leaves."""
_UNFINISHED = re.compile(rb"\x1b(?:\x5b[(\x30-\x39)\x3b]{0,30})?\Z")
"""The beginning of a code at the end of a piece; a longer one is no code that anybody writes."""


async def without_codes(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same text without codes, also where one is cut by the end of a piece (Ray itself leaves those in)."""
    held = b""
    async for piece in pieces:
        text = _CODE.sub(b"", held + piece)
        unfinished = _UNFINISHED.search(text)
        held = unfinished.group() if unfinished else b""
        if text := text[: len(text) - len(held)]:
            yield text
    if held:
        yield held


DEFAULT_LINES = 1000
ALL_LINES = -1
DEFAULT_DOWNLOAD_NAME = "file.txt"
_DEFAULT_INTERVAL_SECONDS = 1.0
_LEAST_INTERVAL_SECONDS = 0.5  # a client may not make the server list a bucket more often

Suffix = Literal["out", "err"]


@dataclass(frozen=True)
class LogQuery:
    """One file, by whatever it is known to the one who asks."""

    node_id: str = ""
    node_ip: str = ""
    filename: str = ""
    actor_id: str = ""
    task_id: str = ""
    attempt_number: int = 0
    submission_id: str = ""
    pid: int | None = None
    suffix: Suffix = "out"
    lines: int = DEFAULT_LINES
    follows: bool = False
    interval_seconds: float = _DEFAULT_INTERVAL_SECONDS
    download_name: str = DEFAULT_DOWNLOAD_NAME
    drops_ansi: bool = False


def parse_log_query(params: Mapping[str, str], media_type: str) -> LogQuery:
    """Raises Unanswerable for what Ray answers with 500 and no reason."""
    to_int(params.get("timeout", "30"))
    interval = params.get("interval")
    query = LogQuery(
        node_id=params.get("node_id", ""),
        node_ip=params.get("node_ip", ""),
        filename=params.get("filename", ""),
        actor_id=params.get("actor_id", ""),
        task_id=params.get("task_id", ""),
        attempt_number=to_int(params.get("attempt_number", "0")),
        submission_id=params.get("submission_id", ""),
        pid=to_int(params["pid"]) if params.get("pid") else None,
        suffix=cast(Suffix, params.get("suffix", "out")),
        lines=to_int(params.get("lines", str(DEFAULT_LINES))) or DEFAULT_LINES,
        follows=media_type == "stream",
        interval_seconds=max(_LEAST_INTERVAL_SECONDS, _float(interval)) if interval else _DEFAULT_INTERVAL_SECONDS,
        download_name=params.get("download_filename", DEFAULT_DOWNLOAD_NAME),
        drops_ansi=params.get("filter_ansi_code", "").lower() == "true",
    )
    _check(query, media_type, has_interval=interval is not None)
    return query


def _check(query: LogQuery, media_type: str, *, has_interval: bool) -> None:
    if media_type not in ("file", "stream"):
        raise Unanswerable(f"Invalid media type: {media_type}")
    if has_interval and not query.follows:
        raise Unanswerable("an interval means something to a stream only")
    if not (query.node_id or query.node_ip or query.actor_id or query.task_id):
        raise Unanswerable("node_id or node_ip must be provided when no actor or task_id is supplied")
    if query.node_id and query.node_ip:
        raise Unanswerable("Both node_id and node_ip are given. Only one of them can be provided.")
    if not (query.actor_id or query.task_id or query.pid or query.filename or query.submission_id):
        raise Unanswerable("None of actor_id, task_id, pid, submission_id or filename is provided")
    if query.suffix not in ("out", "err"):
        raise Unanswerable(f"Invalid suffix: {query.suffix}. Must be one of 'out' or 'err'.")


def to_int(text: str) -> int:
    """Raises Unanswerable for what is no number, as Ray's handlers fail on it."""
    try:
        return int(text)
    except ValueError as exc:
        raise Unanswerable(str(exc)) from exc


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError as exc:
        raise Unanswerable(str(exc)) from exc
