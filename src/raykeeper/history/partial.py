"""A session that is still being read says so with every answer: what it shows is not all of it yet."""

from __future__ import annotations

from dataclasses import replace

from raykeeper.history.answers import Listed
from raykeeper.history.asked import Session
from raykeeper.history.opened import OpenedSession, Progress

PROGRESS_HEADER = "X-Raykeeper-Progress"
"""Bytes of events that were read, and of all; only in answers of a session that is still being read."""


def progress_headers(session: Session) -> dict[str, str]:
    progress = _unfinished(session)
    return {PROGRESS_HEADER: f"{progress.done_bytes}/{progress.total_bytes}"} if progress else {}


def told_if_partial(session: Session, listed: Listed) -> Listed:
    """The list; Ray's commands print its warning where events are missing from it."""
    progress = _unfinished(session)
    if progress is None:
        return listed
    percent = 100 * progress.done_bytes // progress.total_bytes
    warning = f"The history server is still reading this session: {percent} % of its events are in this answer."
    return replace(listed, partial_failure=warning)


def _unfinished(session: Session) -> Progress | None:
    if not isinstance(session, OpenedSession) or session.progress.is_done:
        return None
    return session.progress
