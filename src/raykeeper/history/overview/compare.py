"""Collects the named facts by which two runs are compared, and says what differs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from raykeeper.history.entities.job_list import find_job, session_jobs
from raykeeper.history.overview.facts import facts_of, job_row, until_ns
from raykeeper.history.overview.model import (
    ComparedFact,
    ComparedFailure,
    ComparedFunction,
    ComparedRun,
    Comparison,
    Functions,
    JobRow,
    Resources,
    RunRef,
    SessionFacts,
    Topic,
)
from raykeeper.history.overview.resources import asked_hours, available_hours, hours_in_words, merged_hours, node_rows
from raykeeper.history.overview.task_counts import functions_of
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.model import FailureGroup, Report
from raykeeper.history.store.kube_facts import KubeFacts, newest_pods
from raykeeper.history.text import length_in_words
from raykeeper.masking import masked_text

_ENTRYPOINTS_LIMIT = 10
_VALUE_CHARS = 500
_VALUES_LIMIT = 200  # members of a runtime environment; people read a screenful

FactName = tuple[Topic, str]


@dataclass(frozen=True)
class RunFact:
    topic: Topic
    name: str
    value: str


@dataclass(frozen=True)
class Run:
    """All that is compared of a run."""

    ref: RunRef
    status: str
    started_at: datetime | None
    ended_at: datetime | None
    facts: tuple[RunFact, ...]
    functions: Functions
    failures: tuple[FailureGroup, ...]


async def read_run(context: SessionContext, ref: RunRef, report: Report) -> Run:
    """A run as the tables have it; `report` is about the same run. Raises JobUnknown."""
    jobs = [await find_job(context, ref.job)] if ref.job else await session_jobs(context)
    job_id = (jobs[0].job_id or "") if ref.job else None
    rows, facts = [job_row(job) for job in jobs], await facts_of(context)
    status = rows[0].status.lower() if ref.job else context.session.state.words
    started, ended = (rows[0].started_at, rows[0].ended_at) if ref.job else (facts.started_at, facts.ended_at)
    named: dict[FactName, str] = {
        ("outcome", "Status"): status,
        ("outcome", "Why"): masked_text(_why(report)),
        ("outcome", "Duration"): _length(started, ended),
        ("entrypoint", "Entrypoint"): _entrypoints(rows),
        **environment_facts(job.runtime_env for job in jobs),
        **_version_facts(facts, await context.kube_facts()),
        **_resource_facts(await _resources(context, job_id)),
    }
    return Run(
        ref=ref,
        status=status,
        started_at=started,
        ended_at=ended,
        facts=tuple(RunFact(topic, name, value) for (topic, name), value in named.items()),
        functions=await functions_of(context, job_id),
        failures=report.groups,
    )


def environment_facts(environments: Iterable[Any]) -> dict[FactName, str]:
    """Every member of runtime environments by its path; where jobs differ, all their values."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for environment in environments:
        for path, value in flattened(environment or {}):
            if value not in values[path]:
                values[path].append(value)
    shown = sorted(values.items())[:_VALUES_LIMIT]
    return {("runtime env", path): " | ".join(found)[:_VALUE_CHARS] for path, found in shown}


def flattened(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Every leaf with the path to it. A list is one value: its order is part of what it says."""
    if isinstance(value, Mapping):
        return [leaf for name, part in value.items() for leaf in flattened(part, f"{path}.{name}" if path else name)]
    return [(path, masked_text(value if isinstance(value, str) else json.dumps(value, sort_keys=True)))]


def _version_facts(facts: SessionFacts, kube: KubeFacts) -> dict[FactName, str]:
    """Images are known where somebody recorded what Kubernetes said."""
    images = sorted({pod.image for pod in newest_pods(kube.pods) if pod.image})
    return {
        ("versions", "Ray"): facts.ray_version,
        ("versions", "Python"): facts.python_version,
        ("versions", "Images"): ", ".join(images)[:_VALUE_CHARS],
    }


def _resource_facts(resources: tuple[int, Resources]) -> dict[FactName, str]:
    """Numbers are rounded to what a person would call a difference."""
    nodes, hours = resources
    found: dict[FactName, str] = {("resources", "Nodes"): str(nodes)}
    for row in hours.rows:
        unit = "GiB-hours" if row.name.endswith("memory") else "hours"
        if row.available:
            found["resources", f"{row.name} {unit} available"] = hours_in_words(row.available)
        if row.asked:
            found["resources", f"{row.name} {unit} asked for"] = hours_in_words(row.asked)
    return found


async def _resources(context: SessionContext, job_id: str | None) -> tuple[int, Resources]:
    nodes, until = await node_rows(context), until_ns(context.session)
    hours = merged_hours(available_hours(nodes, until), await asked_hours(context, job_id, until), {})
    return len(nodes), Resources(hours, 0)


def _entrypoints(jobs: Sequence[JobRow]) -> str:
    distinct = list(dict.fromkeys(job.entrypoint for job in jobs if job.entrypoint))
    more = f" and {len(distinct) - _ENTRYPOINTS_LIMIT} others" if len(distinct) > _ENTRYPOINTS_LIMIT else ""
    return " | ".join(distinct[:_ENTRYPOINTS_LIMIT]) + more


def _why(report: Report) -> str:
    """The same for the same cause: without the names of jobs."""
    told = report.headline
    return " · ".join(part for part in (told.text, told.where.text if told.where else "") if part) if told else ""


def _length(started: datetime | None, ended: datetime | None) -> str:
    """To the second: less is noise."""
    if started is None or ended is None:
        return ""
    return length_in_words(timedelta(seconds=round((ended - started).total_seconds())))


FUNCTIONS_LIMIT = 60


def compare(a: Run, b: Run) -> Comparison:
    facts, functions = list(_facts(a, b)), sorted(_functions(a, b), key=_change, reverse=True)
    return Comparison(
        a=_shown(a),
        b=_shown(b),
        differing=tuple(fact for fact in facts if fact.differs),
        same=tuple(fact for fact in facts if not fact.differs and fact.a),
        functions=tuple(functions[:FUNCTIONS_LIMIT]),
        functions_left_out=max(0, len(functions) - FUNCTIONS_LIMIT),
        failures=tuple(sorted(_failures(a, b), key=_failure_order)),
    )


def _shown(run: Run) -> ComparedRun:
    return ComparedRun(run.ref, run.status, run.started_at, run.ended_at)


def _facts(a: Run, b: Run) -> Iterable[ComparedFact]:
    """In the order of the first run, then what only the second one has."""
    of_a, of_b = ({(fact.topic, fact.name): fact.value for fact in run.facts} for run in (a, b))
    for topic, name in dict.fromkeys([*of_a, *of_b]):
        yield ComparedFact(topic, name, of_a.get((topic, name), ""), of_b.get((topic, name), ""))


def _functions(a: Run, b: Run) -> Iterable[ComparedFunction]:
    of_a, of_b = ({row.name: row for row in run.functions.rows} for run in (a, b))
    for name in dict.fromkeys([*of_a, *of_b]):
        yield ComparedFunction(name, of_a.get(name), of_b.get(name))


def _change(one: ComparedFunction) -> tuple[float, str]:
    """By how much the time of a function differs in all."""
    seconds = [row.total_seconds if row else 0.0 for row in (one.a, one.b)]
    return abs(seconds[0] - seconds[1]), one.name


def _failures(a: Run, b: Run) -> Iterable[ComparedFailure]:
    of_a, of_b = ({group.fingerprint: group for group in run.failures} for run in (a, b))
    for fingerprint, group in {**of_b, **of_a}.items():
        counts = [found[fingerprint].failures if fingerprint in found else 0 for found in (of_a, of_b)]
        yield ComparedFailure(fingerprint, group.error_type, masked_text(group.title), counts[0], counts[1])


def _failure_order(failure: ComparedFailure) -> tuple[bool, int, str]:
    return bool(failure.a and failure.b), -(failure.a + failure.b), failure.fingerprint
