"""What Ray Train's own logs tell: which rank raised what, and whether the run went on after that.

A rank that raises is no failure of a task to Ray: its controller asks the ranks how they are, and decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.excerpts import traceback_excerpt
from raykeeper.history.report.fingerprint import digest, title_of
from raykeeper.history.report.log_excerpts import LibraryLog, library_logs
from raykeeper.history.report.model import Address, CodeLocation, Excerpt
from raykeeper.history.report.tracebacks import tracebacks_in
from raykeeper.history.text import without_ansi
from raykeeper.masking import masked_text

ACTORS = """
    SELECT 1 FROM actors WHERE class_name = 'TrainController' AND ($job_id::VARCHAR IS NULL OR job_id = $job_id) LIMIT 1
"""
_FILE = re.compile(r"train/ray-train-app-(?P<kind>controller|worker)-.*?\.log(?:\.\d+)?")
_BYTES_LIMIT = {"controller": 1 << 20, "worker": 256 << 10}
_ALL_BYTES_LIMIT = 16 << 20
_RAISED = "Error in training function"
_DECISION = re.compile(r"\[FailurePolicy\] (?P<decision>\w+)")
_RETRY = "RETRY"
ERRORS_LIMIT = 20


class _Entry(msgspec.Struct):
    """One line of such a log."""

    message: str = ""
    timestamp_ns: int = 0
    job_id: str = ""
    run_name: str = ""
    world_rank: int | None = None
    actor_id: str = ""
    worker_id: str = ""


@dataclass(frozen=True)
class TrainError:
    """What ranks of a run raised in the same way, before the run went on or was given up."""

    run: str
    ranks: tuple[int, ...]
    error: str
    where: CodeLocation | None
    at_ns: int
    excerpt: Excerpt
    is_recovered: bool
    """The run was tried again after it."""

    @property
    def id(self) -> str:
        return f"{self.run} {title_of(digest(self.error))} {self.is_recovered}"


async def read_train(context: SessionContext, job_id: str | None) -> tuple[TrainError, ...]:
    """Of the job's runs; none where it has none."""
    if not await context.rows(ACTORS, {"job_id": job_id}):
        return ()
    return train_errors(await library_logs(context, _FILE, _BYTES_LIMIT, _ALL_BYTES_LIMIT), job_id)


def train_errors(logs: Sequence[LibraryLog], job_id: str | None) -> tuple[TrainError, ...]:
    """The first first. Pure."""
    decisions: dict[str, list[tuple[int, str]]] = {}
    told: list[tuple[LibraryLog, int, _Entry]] = []
    for log in logs:
        for number, entry in _entries(log.text):
            if job_id not in (None, entry.job_id):
                continue
            decision = _DECISION.search(entry.message)
            if decision:
                decisions.setdefault(entry.run_name, []).append((entry.timestamp_ns, decision["decision"]))
            elif entry.message.startswith(_RAISED):
                told.append((log, number, entry))
    told.sort(key=lambda one: one[2].timestamp_ns)
    errors = (_error(*one, decisions.get(one[2].run_name, ())) for one in told)
    return _merged(error for error in errors if error is not None)


def _entries(text: str) -> Iterator[tuple[int, _Entry]]:
    for number, line in enumerate(text.split("\n")):
        if not line.startswith("{"):
            continue
        try:
            yield number, msgspec.json.decode(line, type=_Entry)
        except msgspec.DecodeError:
            continue  # the first line of the end of a long file is cut


def _error(log: LibraryLog, number: int, entry: _Entry, decisions: Iterable[tuple[int, str]]) -> TrainError | None:
    text = masked_text(without_ansi(entry.message), keeps_lines=True)
    found = tracebacks_in(text)
    if not found:
        return None
    raised = found[-1].users
    frame = raised.users_frame
    after = next((decision for at, decision in sorted(decisions) if at >= entry.timestamp_ns), "")
    address = Address(
        actor_id=entry.actor_id,
        worker_id=entry.worker_id,
        node_id=log.node_id,
        file=log.file,
        offset=log.offset,
        line=number + 1 if log.is_whole else None,
    )
    return TrainError(
        run=entry.run_name,
        ranks=(entry.world_rank or 0,),
        error=raised.error,
        where=frame.location if frame else None,
        at_ns=entry.timestamp_ns,
        excerpt=traceback_excerpt(f"traceback of rank {entry.world_rank or 0}", text, found[-1], address),
        is_recovered=after == _RETRY,
    )


def _merged(errors: Iterable[TrainError]) -> tuple[TrainError, ...]:
    """Ranks mostly fail alike: those that do are one, with the words of the first."""
    by_id: dict[str, TrainError] = {}
    for error in errors:
        known = by_id.get(error.id)
        if known is not None:
            by_id[error.id] = replace(known, ranks=tuple(sorted({*known.ranks, *error.ranks})))
        elif len(by_id) < ERRORS_LIMIT:
            by_id[error.id] = error
    return tuple(by_id.values())
