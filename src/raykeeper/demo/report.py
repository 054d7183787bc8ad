"""What ran and what failed, made from the history server's answers about a session. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class Functions:
    """Attempts of the tasks of one function by their state."""

    name: str
    states: Mapping[str, int]


@dataclass(frozen=True)
class Failure:
    """Task attempts of one function that failed alike: with the same words, numbers apart."""

    name: str
    error: str
    """Of the first of them."""
    attempts: int


@dataclass(frozen=True)
class Report:
    """What is known about a dead session."""

    functions: tuple[Functions, ...]
    failures: tuple[Failure, ...]
    more_failures: int
    """Failed attempts beyond those that one answer lists."""
    actors: tuple[str, ...]
    jobs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield from self.jobs
        yield "tasks (attempts by their state):"
        width = max((len(function.name) for function in self.functions), default=0)
        for function in self.functions:
            states = ", ".join(f"{number} {state}" for state, number in sorted(function.states.items()))
            yield f"  {function.name:<{width}}  {states}"
        yield "why attempts failed:" if self.failures else "no attempt failed"
        for failure in self.failures:
            yield f"  {failure.attempts} x {failure.name}: {failure.error}"
        if self.more_failures:
            yield f"  and {self.more_failures} more"
        if self.actors:
            yield "actors:"
            yield from (f"  {actor}" for actor in self.actors)


def parse_functions(summary: Row) -> tuple[Functions, ...]:
    """From the answer to `/api/v0/tasks/summarize`."""
    by_name = summary["data"]["result"]["result"]["node_id_to_summary"]["cluster"]["summary"]
    return tuple(Functions(name, by_name[name]["state_counts"]) for name in sorted(by_name))


def parse_failures(listed: Row) -> tuple[tuple[Failure, ...], int]:
    """From failed tasks with details; and how many more there are than were listed."""
    answer = listed["data"]["result"]
    rows: Sequence[Row] = answer["result"]
    alike = [(row["func_or_class_name"], _NUMBERS.sub("#", error_line(row))) for row in rows]
    first = {key: error_line(row) for key, row in reversed(list(zip(alike, rows, strict=True)))}
    failures = tuple(Failure(key[0], first[key], number) for key, number in Counter(alike).most_common())
    return failures, max(0, answer["num_filtered"] - len(rows))


def parse_actors(listed: Row) -> tuple[str, ...]:
    """From actors with details: class, state, restarts. Ray's own job supervisors are left out."""
    rows: Iterable[Row] = listed["data"]["result"]["result"]
    return tuple(_actor_line(row) for row in rows if row["class_name"] != "JobSupervisor")


def parse_jobs(jobs: Sequence[Row]) -> tuple[str, ...]:
    """From the answer to `/api/jobs/`."""
    return tuple(_job_line(job) for job in jobs)


def error_line(row: Row) -> str:
    """The line of an error message that says what happened; the others say where."""
    lines = [line.strip() for line in (row.get("error_message") or "").splitlines() if line.strip()]
    kind = row.get("error_type") or "unknown error"
    if not lines:
        return kind
    # A traceback of Python ends with the error; what Ray says of a process begins with it.
    return lines[-1] if kind == "TASK_EXECUTION_EXCEPTION" else f"{kind}: {lines[0]}"


def _actor_line(row: Row) -> str:
    restarts = int(row.get("num_restarts") or 0)
    return f"{row['class_name']} {row['state']}" + (f", restarted {restarts} x" if restarts else "")


def _job_line(job: Row) -> str:
    name, message = job.get("submission_id") or job.get("job_id"), (job.get("message") or "").strip()
    # What follows are the last lines of the script's own output.
    said = message.partition("\n")[0].partition(", last available logs")[0]
    return f"job {name} {job['status']}: {said}"
