"""Failures as rules see them: sets with the same fingerprint, each with its first attempt. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from raykeeper.history.query.context import Row
from raykeeper.history.report.fingerprint import Fingerprint, Wrapping, fingerprint_of, headline
from raykeeper.history.report.model import Address, LogSlice, Who
from raykeeper.history.report.naming import called, phrase
from raykeeper.history.text import shortened

ADVICE = "Some common causes include"
"""How Ray goes on after it said that a process died."""


def without_advice(said: str) -> str:
    """What Ray says of a death, without the guesses that it adds to each."""
    return "\n".join(line.partition(ADVICE)[0].rstrip() for line in said.split("\n"))


WORKER_DIED = "WORKER_DIED"
"""Of a task whose worker died, and of one that ended with its job."""

AttemptKey = tuple[str, int]
"""Task id and number of the attempt."""


@dataclass(frozen=True)
class FailedAttempt:
    """One failed attempt, with what is known of its worker, its node and its actor."""

    task_id: str
    attempt_number: int
    job_id: str = ""
    name: str = ""
    function: str = ""
    message: str = ""
    end_ns: int | None = None
    node_id: str | None = None
    worker_id: str | None = None
    actor_id: str | None = None
    required_resources: str | None = None
    exit_type: str | None = None
    exit_detail: str | None = None
    worker_end_ns: int | None = None
    pid: int | None = None
    node_end_ns: int | None = None
    node_ip: str | None = None
    death_reason: str | None = None
    death_message: str | None = None
    class_name: str | None = None
    actor_name: str | None = None
    repr_name: str | None = None
    actor_end_ns: int | None = None
    actor_death: Mapping[str, Any] = field(default_factory=dict)
    """Ray's `deathCause`: one context, by its name."""
    rank: str = ""
    """Its number among the workers of Ray Train, if it is one and a driver told."""
    trial: str = ""
    """Its name among the trials of Ray Tune, if it is one and a driver told: `objective_90db9_00002`."""
    logs: tuple[LogSlice, ...] = ()
    """The ends of what it wrote, where they were fetched."""

    @property
    def who(self) -> Who:
        """What its user calls it: a function, an actor, an operator of Ray Data, a trainable of Ray Tune."""
        return called(
            self.function,
            name=self.name,
            actor_name=self.actor_name or "",
            class_name=self.class_name or "",
            repr_name=self.repr_name or "",
            rank=self.rank,
        )

    @property
    def trial_text(self) -> str:
        """The trial of Ray Tune that it is, in words. Its name is another in each run, so that no key may hold it."""
        return f"Ray Tune trial {self.trial}" if self.trial else ""

    @property
    def what(self) -> str:
        """In a few words, to whom it happened: `actor trainer-2 (Trainer) in Trainer.step`."""
        return self.trial_text or phrase(self.who, self.function)

    @property
    def address(self) -> Address:
        return Address(
            task_id=self.task_id,
            attempt_number=self.attempt_number,
            actor_id=self.actor_id or "",
            worker_id=self.worker_id or "",
            node_id=self.node_id or "",
        )

    @property
    def actor_end(self) -> Mapping[str, Any]:
        """Ray's `actorDiedErrorContext`: reason and message of its actor's death; empty where there is none."""
        context = self.actor_death.get("actorDiedErrorContext")
        return context if isinstance(context, dict) else {}


_TOLD_ACTOR = re.compile(
    r"class_name: (?P<class_name>\S+)\n\s*actor_id: (?P<actor_id>[0-9a-f]+)\n(?:\s*pid: (?P<pid>\d+)\n)?"
    r"(?:\s*name: (?P<name>[^\n]*)\n)?(?:\s*namespace: [^\n]*\n)?(?:\s*ip: \S+\n)?(?P<said>The actor is dead [^\n]*)?"
)
"""How Ray's exception tells of an actor that died."""
_WORKER_HAS_DIED = "its worker process has died"


def with_told_actor(first: FailedAttempt, words: str) -> FailedAttempt:
    """With what Ray's exception in a driver's words tells of its actor, where no event did."""
    if not first.actor_id or first.class_name:
        return first
    told = next((one for one in _TOLD_ACTOR.finditer(words) if one["actor_id"] == first.actor_id), None)
    if told is None:
        return first
    said = told["said"] or first.message
    end = {"reason": WORKER_DIED if _WORKER_HAS_DIED in said else "", "errorMessage": said}
    return replace(
        first,
        class_name=told["class_name"],
        actor_name=(told["name"] or "").strip(),
        pid=int(told["pid"]) if told["pid"] else first.pid,
        actor_death=first.actor_death or {"actorDiedErrorContext": end},
    )


@dataclass(frozen=True)
class FailureSet:
    """All failed attempts with one fingerprint."""

    fingerprint: Fingerprint
    error_type: str
    wrapping: Wrapping
    failures: int
    recovered: int
    lost_tasks: int
    """Tasks that failed for good, and whose last attempt is one of these."""
    first_ns: int
    last_ns: int
    functions: Mapping[str, int]
    nodes: tuple[str, ...]
    worker_exits: Mapping[str, int]
    """How many ran on a worker that ended so."""
    lost_nodes: int
    """How many were on a node that died about then."""
    job_ends: int
    """How many were open when their job ended."""
    never_ran: int
    """How many waited for a node to their end."""
    first: FailedAttempt
    jobs: frozenset[str] = frozenset()
    """Ids of the jobs that they are of."""

    @property
    def id(self) -> str:
        return self.fingerprint.id

    @property
    def title(self) -> str:
        return self.fingerprint.title

    @property
    def words(self) -> str:
        """What the first of them said, with its values and without Ray's advice."""
        if self.error_type == WORKER_DIED and self.never_ran:
            return self.title
        return shortened(without_advice(headline(self.first.message)).strip()) or self.title


def failure_sets(rows: Iterable[Row], nodes_limit: int) -> list[FailureSet]:
    """Rows of `GROUPED_FAILURES` as sets, the most frequent first; their first attempts are known by key alone."""
    by_id: dict[str, list[tuple[Fingerprint, Row]]] = {}
    for row in rows:
        found = fingerprint_of(row["error_type"] or "", Wrapping(row["wrapping"]), _told(row))
        by_id.setdefault(found.id, []).append((found, row))
    sets = [_united(members[0][0], [row for _, row in members], nodes_limit) for members in by_id.values()]
    return sorted(sets, key=lambda one: (-one.failures, one.first_ns, one.id))


def _united(found: Fingerprint, rows: Sequence[Row], nodes_limit: int) -> FailureSet:
    first = min(rows, key=lambda row: (row["first_ns"], row["first"]["task_id"]))
    return FailureSet(
        fingerprint=found,
        error_type=first["error_type"] or "",
        wrapping=Wrapping(first["wrapping"]),
        failures=sum(row["failures"] for row in rows),
        recovered=sum(row["recovered"] for row in rows),
        lost_tasks=sum(row["lost_tasks"] for row in rows),
        first_ns=first["first_ns"],
        last_ns=max(row["last_ns"] for row in rows),
        functions=_counted(rows, "function"),
        nodes=tuple(sorted({node for row in rows for node in row["nodes"] or ()})[:nodes_limit]),
        worker_exits=_counted(rows, "worker_exit"),
        lost_nodes=sum(row["failures"] for row in rows if row["has_lost_node"]),
        job_ends=sum(row["failures"] for row in rows if row["closed_by"] == "job"),
        never_ran=sum(row["failures"] for row in rows if row["never_ran"]),
        first=FailedAttempt(**first["first"]),
        jobs=frozenset(job for row in rows for job in row["jobs"]),
    )


def _told(row: Row) -> str:
    """Of what never ran all that is told is its job's end, so its function tells it apart from others."""
    never_ran: str = f"{row['function'] or 'a task'} never ran"
    digested: str = row["digest"]
    is_all_told = row["never_ran"] and row["error_type"] == WORKER_DIED
    return never_ran if is_all_told else digested


def _counted(rows: Iterable[Row], column: str) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for row in rows:
        if row[column] is not None:
            counts[row[column]] += row["failures"]
    return dict(counts.most_common())


_ATTEMPT_FIELDS = frozenset(FailedAttempt.__dataclass_fields__)


def failed_attempt(row: Row) -> FailedAttempt:
    """A row of `FIRST_FAILURES`."""
    known = {name: value for name, value in row.items() if name in _ATTEMPT_FIELDS and value is not None}
    return FailedAttempt(**known, actor_death=death_context(row["death_cause"]))


def death_context(death_cause: str | None) -> Mapping[str, Any]:
    """An actor's `deathCause` out of Ray's JSON; empty where there is none."""
    if not death_cause:
        return {}
    try:
        return msgspec.json.decode(death_cause, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
