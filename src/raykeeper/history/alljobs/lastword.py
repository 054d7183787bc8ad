"""The jobs of a session by the last word of its head's dashboard: two small reads, for sessions without a summary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from raykeeper.history.alljobs.summarizing import JOBS_LIMIT, SUMMARY_VERSION, job_summary, newest_first
from raykeeper.history.endpoints.ended import ended_job
from raykeeper.history.endpoints.joblist import POLLED
from raykeeper.history.endpoints.redaction import masked_row
from raykeeper.layout.keys import PolledKey, SessionId, parse_polled_key
from raykeeper.layout.polled import DamagedAnswer, decode_polled, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.layout.summaries import SessionSummary
from raykeeper.storage.store import ObjectStore


async def last_word(
    store: ObjectStore, session: SessionId, ended_at: datetime | None, *, is_over: bool
) -> SessionSummary | None:
    """What is known of the session's jobs without opening it; None where its dashboard never told."""
    newest = ""
    async for stat in store.list(PolledKey.name_prefix(session, polled_name(POLLED))):
        newest = stat.key if parse_polled_key(stat.key) else newest
    data = await store.find(newest) if newest else None
    try:
        return summary_of(decode_polled(data), ended_at, is_over=is_over) if data else None
    except (DamagedAnswer, msgspec.DecodeError):
        return None


def summary_of(answer: PolledAnswer, ended_at: datetime | None, *, is_over: bool) -> SessionSummary | None:
    """Pure. A session that crashed lived at least until this answer. Raises msgspec.DecodeError for no list of jobs."""
    if answer.status != 200:
        return None
    told: Sequence[dict[str, Any]] = msgspec.json.decode(bytes(answer.body), type=list[dict[str, Any]])
    end = (ended_at or answer.polled_at) if is_over else None
    jobs = newest_first(masked_row(ended_job(job, end)) for job in told)
    return SessionSummary(
        version=SUMMARY_VERSION,
        as_of=answer.polled_at,
        jobs=tuple(map(job_summary, jobs[:JOBS_LIMIT])),
        left_out=max(0, len(jobs) - JOBS_LIMIT),
    )
