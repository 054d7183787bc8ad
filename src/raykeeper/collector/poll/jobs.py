"""The jobs of a session as the dashboard lists them: whose datasets are worth asking for. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from raykeeper.collector.poll.answers import UnreadableAnswer, read_answer
from raykeeper.rayevents.states import ENDED_JOBS


class JobRow(msgspec.Struct, frozen=True):
    """What is read of one element of `/api/jobs/`."""

    job_id: str | None = None
    status: str = ""

    @property
    def is_over(self) -> bool:
        return self.status in ENDED_JOBS


def parse_jobs(body: bytes) -> dict[str, JobRow]:
    """Jobs by id, those without a driver left out; what is not a list of jobs holds none."""
    try:
        rows = read_answer(body, list[msgspec.Raw])
    except UnreadableAnswer:
        return {}
    return {row.job_id: row for row in _readable(rows) if row.job_id}


def _readable(rows: list[msgspec.Raw]) -> Iterator[JobRow]:
    for row in rows:
        try:
            yield msgspec.json.decode(row, type=JobRow)
        except (msgspec.DecodeError, RecursionError):
            continue  # stored as it is all the same
