"""Ray's own event cards, from the files under `logs/events/` of every node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from raykeeper.history.query.context import SessionContext
from raykeeper.masking import masked_value

FILES = "events/event_*.log"
LIMIT_BYTES_PER_FILE = 8 * 1024 * 1024
"""Of the end of each file; Ray keeps 10,000 events of a job in memory, which is about this much."""

GLOBAL = "global"
"""Where Ray files what belongs to no job."""


async def read_events(context: SessionContext) -> list[dict[str, Any]]:
    """Every event once, in the order of time."""
    return parse_event_files(await context.logs.read_matching(context.session, FILES, LIMIT_BYTES_PER_FILE))


def parse_event_files(files: Iterable[bytes]) -> list[dict[str, Any]]:
    """Lines that are no events, such as the cut first line of a long file, are left out."""
    events: dict[str, dict[str, Any]] = {}
    for data in files:
        for line in data.splitlines():
            event = _parse_event(line)
            if event is not None:
                events.setdefault(event["event_id"], masked_value(event))
    return sorted(events.values(), key=_seconds)


def by_job(events: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    jobs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        fields = event.get("custom_fields")
        job_id = fields.get("job_id") if isinstance(fields, dict) else None
        jobs.setdefault(job_id or GLOBAL, []).append(event)
    return jobs


def _parse_event(line: bytes) -> dict[str, Any] | None:
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event_id"), str):
        return None
    return _with_newlines(event) if str(event.get("timestamp", "")).isdigit() else None


def _with_newlines(event: dict[str, Any]) -> dict[str, Any]:
    """Ray writes every message in one line, with escapes of its own inside JSON's."""
    message = event.get("message")
    if not isinstance(message, str):
        return event
    return {**event, "message": message.replace("\\n", "\n").replace("\\r", "\n")}


def _seconds(event: dict[str, Any]) -> int:
    """C++ writes a number and Python a text."""
    return int(event["timestamp"])


def local_time(event: dict[str, Any], offset: timedelta) -> str:
    """When it happened, by the clock on the head's wall."""
    return str(datetime.fromtimestamp(_seconds(event), timezone(offset)).replace(tzinfo=None))
