"""Answers to a search, as the JSON API and the pages tell them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from raykeeper.history.search.asking import Kind, Skipped


class Line(msgspec.Struct, frozen=True, kw_only=True):
    offset: Annotated[int, Meta(description="Of its first byte in the file; in a message, the line's number.")]
    text: str
    is_hit: bool


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One line that was found, with those around it."""

    kind: Kind
    what: Annotated[str, Meta(description="What said it: task, actor, job, worker, node, Kubernetes, or a log.")]
    title: Annotated[str, Meta(description="Whose message it is, or the path of the file under `logs/`.")]
    namespace: str
    cluster: str
    session: str
    job_id: str
    node_id: str
    generation: Annotated[str, Meta(description="Tells apart files that had this path one after the other.")]
    at: Annotated[
        datetime | None, Meta(description="Of a message, when it came; of a log, when the collector read the line.")
    ]
    count: Annotated[int, Meta(description="How often the same message came.")]
    lines: tuple[Line, ...]
    path: Annotated[str, Meta(description="Of the page on this server that shows more of it.")]


class Unsearched(msgspec.Struct, frozen=True, kw_only=True):
    """Something that should have been searched and could not be."""

    what: str
    reason: str


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found in the time it had."""

    hits: tuple[Hit, ...]
    next: Annotated[str | None, Meta(description="For `after`, to go on; null where all was searched.")]
    complete: Annotated[bool, Meta(description="All of the session was searched.")]
    scanned_bytes: Annotated[int, Meta(description="Of log packs, as stored, that lie behind the search.")]
    total_bytes: Annotated[int, Meta(description="Of all log packs of the nodes asked for.")]
    unsearched: tuple[Unsearched, ...]


class SessionsSearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search through many sessions found in the time it had."""

    hits: tuple[Hit, ...]
    next: Annotated[str | None, Meta(description="For `after`, to go on; null where all was searched.")]
    complete: Annotated[bool, Meta(description="All sessions asked for were searched.")]
    searched_sessions: Annotated[int, Meta(description="Sessions that this part of the search came to the end of.")]
    searched_back_to: Annotated[datetime | None, Meta(description="When the last session looked at had started.")]
    unsearched: tuple[Unsearched, ...]


def unsearched_of(skipped: Skipped) -> tuple[Unsearched, ...]:
    return tuple(Unsearched(what=what, reason=reason) for what, reason in skipped.reasons.items())
