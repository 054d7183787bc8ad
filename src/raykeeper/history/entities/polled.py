"""Rows of state lists that Ray's dashboard once gave, in Ray's own shape.

Placement groups are never in events, so the collector asks for them. Objects and runtime environments live only as long
as the cluster and are there if somebody had them polled. A cluster captured without a sidecar has all its lists here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from raykeeper.history.ingest.session import Session
from raykeeper.history.query.context import Row
from raykeeper.layout.records import PolledAnswer


class _Result(msgspec.Struct):
    result: list[dict[str, Any]]


class _Data(msgspec.Struct):
    result: _Result


class _Envelope(msgspec.Struct):
    data: _Data


def polled_rows(session: Session, resource: str, identity: Iterable[str]) -> list[Row] | None:
    """Every row of `/api/v0/<resource>` by its identity, the newest answer first; None if nobody ever asked.

    A row that does not say what it is about is none of Ray's, and is passed over.
    """
    good = _answers(session, resource)
    if not good:
        return None
    names = tuple(identity)
    rows: dict[tuple[Any, ...], Row] = {}
    for answer in sorted(good, key=lambda answer: answer.polled_at):
        for row in _rows(answer):
            if isinstance(row.get(names[0]), str):
                rows[tuple(str(row.get(name)) for name in names)] = row
    return list(rows.values())


def has_polled_rows(session: Session, resource: str) -> bool:
    """Whether somebody ever asked for them."""
    return bool(_answers(session, resource))


def _answers(session: Session, resource: str) -> list[PolledAnswer]:
    answers = (answer for path, answer in session.polled.items() if path.partition("?")[0] == f"/api/v0/{resource}")
    return [answer for answer in answers if answer.status == 200]


def _rows(answer: PolledAnswer) -> list[Row]:
    try:
        return msgspec.json.decode(answer.body, type=_Envelope).data.result.result
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
