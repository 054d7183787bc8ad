"""Collects the named facts by which two runs are compared, and says what differs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from raykeeper.history.entities.job_list import find_job, session_jobs
from raykeeper.history.overview.entrypoint import parse_entrypoint
from raykeeper.history.overview.facts import facts_of, job_row, until_ns
from raykeeper.history.overview.model import (
    ComparedFact,
    ComparedFailure,
    ComparedFunction,
    ComparedRun,
    Comparison,
    FailureChange,
    FunctionRow,
    Functions,
    JobRow,
    Resources,
    RunRef,
    SessionFacts,
    Topic,
    Verdict,
)
from raykeeper.history.overview.packages import packages_of
from raykeeper.history.overview.resources import asked_hours, available_hours, hours_in_words, merged_hours, node_rows
from raykeeper.history.overview.task_counts import functions_of
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.model import FailureGroup, Report
from raykeeper.history.store.kube_facts import KubeFacts, newest_pods
from raykeeper.history.text import length_in_words
from raykeeper.masking import masked_text

_ENTRYPOINTS_LIMIT = 10
_VALUE_CHARS = 500
_VALUES_LIMIT = 200  # of one topic; people read a screenful

FactName = tuple[Topic, str]
_ENV_VARS = "env_vars"
_STATUS, _DURATION = "Status", "Duration"
_WELL, _BAD = ("succeeded", "ended"), ("failed", "crashed")
_NOISE = 0.05
"""A change of the median of less than this share is neither better nor worse."""


@dataclass(frozen=True)
class RunFact:
    topic: Topic
    name: str
    value: str
    amount: float | None = None
    """The same as a number, where it is one."""


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
    return Run(
        ref=ref,
        status=status,
        started_at=started,
        ended_at=ended,
        facts=(
            RunFact("outcome", _STATUS, status),
            RunFact("outcome", "Why", masked_text(_why(report))),
            _duration(started, ended),
            *joined_facts([*command_facts(rows), *environment_facts(job.runtime_env for job in jobs)]),
            *_version_facts(facts, await context.kube_facts()),
            *_resource_facts(await _resources(context, job_id)),
        ),
        functions=await functions_of(context, job_id),
        failures=report.groups,
    )


def joined_facts(pairs: Iterable[tuple[FactName, str]]) -> list[RunFact]:
    """One for each name, so many of each topic; where jobs differ, with all their values."""
    values: defaultdict[Topic, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (topic, name), value in pairs:
        if value not in (found := values[topic][name]):
            found.append(value)
    return [
        RunFact(topic, name, " | ".join(found)[:_VALUE_CHARS])
        for topic, named in values.items()
        for name, found in list(named.items())[:_VALUES_LIMIT]
    ]


def command_facts(jobs: Sequence[JobRow]) -> list[tuple[FactName, str]]:
    """What ran, and each argument. Jobs that run different things are not taken apart: whose would an argument be?"""
    entrypoints = list(dict.fromkeys(job.entrypoint for job in jobs if job.entrypoint))
    commands = [parse_entrypoint(entrypoint) for entrypoint in entrypoints[:_ENTRYPOINTS_LIMIT]]
    if len({command.program for command in commands}) > 1:
        more = len(entrypoints) - _ENTRYPOINTS_LIMIT
        rest = f" and {more} others" if more > 0 else ""
        return [(("entrypoint", "Entrypoint"), " | ".join(entrypoints[:_ENTRYPOINTS_LIMIT]) + rest)]
    found: list[tuple[FactName, str]] = []
    for command in commands:
        found.append((("entrypoint", "Entrypoint"), command.program))
        found += [(("arguments", name), value) for name, value in command.arguments]
        found += [(("env vars", name), value) for name, value in command.variables]
    return found


def environment_facts(environments: Iterable[Any]) -> list[tuple[FactName, str]]:
    """Every variable, every package and every other member of runtime environments, by its name or path."""
    found: list[tuple[FactName, str]] = []
    for environment in environments:
        packages, rest = packages_of(environment or {})
        if isinstance(rest.get(_ENV_VARS), Mapping):
            found += [(("env vars", path), value) for path, value in sorted(flattened(rest.pop(_ENV_VARS)))]
        found += [(("packages", name), masked_text(version)) for name, version in sorted(packages)]
        found += [(("runtime env", path), value) for path, value in sorted(flattened(rest))]
    return found


def flattened(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Every leaf with the path to it. A list is one value: its order is part of what it says."""
    if isinstance(value, Mapping):
        return [leaf for name, part in value.items() for leaf in flattened(part, f"{path}.{name}" if path else name)]
    return [(path, masked_text(value if isinstance(value, str) else json.dumps(value, sort_keys=True)))]


def _version_facts(facts: SessionFacts, kube: KubeFacts) -> Iterator[RunFact]:
    """Images are known where somebody recorded what Kubernetes said."""
    images = sorted({pod.image for pod in newest_pods(kube.pods) if pod.image})
    yield RunFact("versions", "Ray", facts.ray_version)
    yield RunFact("versions", "Python", facts.python_version)
    yield RunFact("versions", "Images", ", ".join(images)[:_VALUE_CHARS])


def _resource_facts(resources: tuple[int, Resources]) -> Iterator[RunFact]:
    """Numbers are rounded to what a person would call a difference."""
    nodes, hours = resources
    yield RunFact("resources", "Nodes", str(nodes), nodes)
    for row in hours.rows:
        unit = "GiB-hours" if row.name.endswith("memory") else "hours"
        for words, amount in (("available", row.available), ("asked for", row.asked)):
            if amount:
                yield RunFact("resources", f"{row.name} {unit} {words}", hours_in_words(amount), amount)


async def _resources(context: SessionContext, job_id: str | None) -> tuple[int, Resources]:
    nodes, until = await node_rows(context), until_ns(context.session)
    hours = merged_hours(available_hours(nodes, until), await asked_hours(context, job_id, until), {})
    return len(nodes), Resources(hours, 0)


def _why(report: Report) -> str:
    """The same for the same cause: without the names of jobs."""
    told = report.headline
    return " · ".join(part for part in (told.text, told.where.text if told.where else "") if part) if told else ""


def _duration(started: datetime | None, ended: datetime | None) -> RunFact:
    """To the second: less is noise."""
    if started is None or ended is None:
        return RunFact("outcome", _DURATION, "")
    seconds = round((ended - started).total_seconds())
    return RunFact("outcome", _DURATION, length_in_words(timedelta(seconds=seconds)), seconds)


FUNCTIONS_LIMIT = 60


def compare(a: Run, b: Run) -> Comparison:
    """A shorter time is better only of two runs that went well: one that failed ended early."""
    facts, functions = list(_facts(a, b)), sorted(_functions(a, b), key=_order_of_change, reverse=True)
    return Comparison(
        a=_shown(a),
        b=_shown(b),
        differing=tuple(fact for fact in facts if fact.change != "same"),
        same=tuple(fact for fact in facts if fact.change == "same" and fact.a),
        functions=tuple(functions[:FUNCTIONS_LIMIT]),
        functions_left_out=max(0, len(functions) - FUNCTIONS_LIMIT),
        failures=tuple(sorted(_failures(a, b), key=_failure_order)),
    )


def _shown(run: Run) -> ComparedRun:
    return ComparedRun(run.ref, run.status, run.started_at, run.ended_at)


def _facts(a: Run, b: Run) -> Iterable[ComparedFact]:
    """In the order of the first run, then what only the second one has."""
    of_a, of_b = ({(fact.topic, fact.name): fact for fact in run.facts} for run in (a, b))
    for topic, name in dict.fromkeys([*of_a, *of_b]):
        nothing = RunFact(topic, name, "")
        are_well = a.status in _WELL and b.status in _WELL
        yield _compared_fact(of_a.get((topic, name), nothing), of_b.get((topic, name), nothing), are_well=are_well)


def _compared_fact(a: RunFact, b: RunFact, *, are_well: bool) -> ComparedFact:
    compared = ComparedFact(a.topic, a.name, a.value, b.value)
    if a.value == b.value:
        return compared
    compared = replace(compared, change="added" if not a.value else "removed" if not b.value else "changed")
    if (a.topic, a.name) == ("outcome", _STATUS):
        return replace(compared, verdict=_verdict_of_status(a.value, b.value))
    if a.amount is None or b.amount is None:
        return compared
    if (a.topic, a.name) == ("outcome", _DURATION):
        length = length_in_words(timedelta(seconds=abs(b.amount - a.amount)))
        delta = f"{'+' if b.amount > a.amount else '-'}{length}{_share(a.amount, b.amount)}"
        return replace(compared, delta=delta, verdict=less_is_better(a.amount, b.amount) if are_well else "")
    return replace(compared, delta=f"{b.amount - a.amount:+.3g}{_share(a.amount, b.amount)}")


def _share(a: float, b: float) -> str:
    return f" ({b / a - 1:+.0%})" if a else ""


def _verdict_of_status(a: str, b: str) -> Verdict:
    if a in _WELL and b in _BAD:
        return "worse"
    return "better" if a in _BAD and b in _WELL else ""


def less_is_better(a: float, b: float) -> Verdict:
    return "" if a == b else "worse" if b > a else "better"


def _functions(a: Run, b: Run) -> Iterable[ComparedFunction]:
    of_a, of_b = ({row.name: row for row in run.functions.rows} for run in (a, b))
    for name in dict.fromkeys([*of_a, *of_b]):
        yield _compared_function(name, of_a.get(name), of_b.get(name))


def _compared_function(name: str, a: FunctionRow | None, b: FunctionRow | None) -> ComparedFunction:
    """By the median: that is what one slow attempt does not move."""
    compared = ComparedFunction(name, a, b)
    if a is None or b is None or not a.p50_seconds or b.p50_seconds is None:
        return compared
    change = b.p50_seconds / a.p50_seconds - 1
    return replace(compared, change=change, verdict=less_is_better(0, change) if abs(change) >= _NOISE else "")


def _order_of_change(one: ComparedFunction) -> tuple[float, str]:
    """By how much the time of a function differs in all."""
    seconds = [row.total_seconds if row else 0.0 for row in (one.a, one.b)]
    return abs(seconds[0] - seconds[1]), one.name


def _failures(a: Run, b: Run) -> Iterable[ComparedFailure]:
    of_a, of_b = ({group.fingerprint: group for group in run.failures} for run in (a, b))
    for fingerprint, group in {**of_b, **of_a}.items():
        counts = [found[fingerprint].failures if fingerprint in found else 0 for found in (of_a, of_b)]
        yield _compared_failure(group, counts[0], counts[1])


def _compared_failure(group: FailureGroup, a: int, b: int) -> ComparedFailure:
    compared = ComparedFailure(group.fingerprint, group.error_type, masked_text(group.title), a, b)
    if a == b:
        return compared
    words: tuple[FailureChange, FailureChange] = ("more", "fewer") if a and b else ("new", "gone")
    return replace(compared, change=words[0] if b > a else words[1], verdict=less_is_better(a, b))


def _failure_order(failure: ComparedFailure) -> tuple[bool, int, str]:
    return bool(failure.a and failure.b), -(failure.a + failure.b), failure.fingerprint
