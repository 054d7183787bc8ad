"""Answers that take a second on a million tasks, kept as JSON while the session behind them stays as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

import msgspec

from raykeeper.history.asked import Asked, Session
from raykeeper.history.endpoints.remembered import RememberedBodies, last_poll, version_of
from raykeeper.history.opened import OpenedSession

_TABLES = ("tasks", "task_list", "nodes", "actors", "jobs")
_remembered = RememberedBodies()

T = TypeVar("T")


async def remembered(asked: Asked, what: Hashable, kind: type[T], make: Callable[[], Awaitable[T]]) -> T:
    """What `make` gives, or gave when the session was the same. Failures are not kept."""
    kube = await asked.kube_facts()
    key = (_version(asked.session), what, len(kube.events), len(kube.pods))
    body = _remembered.find(key)
    if body is not None:
        return msgspec.json.decode(body, type=kind)
    made = await make()
    _remembered.keep(key, msgspec.json.encode(made))
    return made


def _version(session: Session) -> Hashable:
    """Differs as soon as anything was added to the session."""
    opened = session if isinstance(session, OpenedSession) else None
    growth = (opened.progress, opened.ended_at, opened.nodes, opened.ends, opened.gaps) if opened else ()
    return session.id, session.as_of, growth, version_of(session, *_TABLES), last_poll(session)
