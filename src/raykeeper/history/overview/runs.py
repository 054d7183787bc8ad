"""What one run is compared by: a session or one of its jobs, reduced to facts with names."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.kubefacts.merged import KubeFacts, newest_pods
from raykeeper.history.overview.comparison import RunRef, Topic
from raykeeper.history.overview.facts import facts_of, job_row, state_of, until_ns
from raykeeper.history.overview.job import find_job
from raykeeper.history.overview.model import Functions, JobRow, Resources, SessionFacts
from raykeeper.history.overview.nodes import node_rows
from raykeeper.history.overview.resources import asked_hours, available_hours, hours_in_words, merged_hours
from raykeeper.history.overview.taskcounts import functions_of
from raykeeper.history.report.model import FailureGroup, Report
from raykeeper.history.secretpatterns import masked_text

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


async def read_run(asked: Asked, ref: RunRef, report: Report) -> Run:
    """A run as the tables have it; `report` is about the same run. Raises JobUnknown."""
    jobs = [await find_job(asked, ref.job)] if ref.job else await known_jobs(asked)
    job_id = (jobs[0].get("job_id") or "") if ref.job else None
    rows, facts = [job_row(job) for job in jobs], facts_of(asked)
    status = rows[0].status.lower() if ref.job else state_of(asked.session)
    started, ended = (rows[0].started_at, rows[0].ended_at) if ref.job else (facts.started_at, facts.ended_at)
    named: dict[FactName, str] = {
        ("outcome", "Status"): status,
        ("outcome", "Why"): masked_text(report.first_cause.title) if report.first_cause else "",
        ("outcome", "Duration"): _length(started, ended),
        ("entrypoint", "Entrypoint"): _entrypoints(rows),
        **environment_facts(job.get("runtime_env") for job in jobs),
        **version_facts(facts, await asked.kube_facts()),
        **resource_facts(await _resources(asked, job_id)),
    }
    return Run(
        ref=ref,
        status=status,
        started_at=started,
        ended_at=ended,
        facts=tuple(RunFact(topic, name, value) for (topic, name), value in named.items()),
        functions=await functions_of(asked, job_id),
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


def version_facts(facts: SessionFacts, kube: KubeFacts) -> dict[FactName, str]:
    """Images are known where somebody recorded what Kubernetes said."""
    images = sorted({pod.image for pod in newest_pods(kube.pods) if pod.image})
    return {
        ("versions", "Ray"): facts.ray_version,
        ("versions", "Python"): facts.python_version,
        ("versions", "Images"): ", ".join(images)[:_VALUE_CHARS],
    }


def resource_facts(resources: tuple[int, Resources]) -> dict[FactName, str]:
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


async def _resources(asked: Asked, job_id: str | None) -> tuple[int, Resources]:
    nodes, until = await node_rows(asked), until_ns(asked.session)
    hours = merged_hours(available_hours(nodes, until), await asked_hours(asked, job_id, until), {})
    return len(nodes), Resources(hours, 0)


def _entrypoints(jobs: Sequence[JobRow]) -> str:
    distinct = list(dict.fromkeys(job.entrypoint for job in jobs if job.entrypoint))
    more = f" and {len(distinct) - _ENTRYPOINTS_LIMIT} others" if len(distinct) > _ENTRYPOINTS_LIMIT else ""
    return " | ".join(distinct[:_ENTRYPOINTS_LIMIT]) + more


def _length(started: datetime | None, ended: datetime | None) -> str:
    """To the second: less is noise."""
    if started is None or ended is None:
        return ""
    return str(timedelta(seconds=round((ended - started).total_seconds())))
