"""How two answers of a dashboard differ, field by field, and which differences were reviewed.

Rows are compared by what they are about, not by their place; the order is a field of its own, `order`. A reviewed
difference says for which requests and fields it holds, what it must look like, and why it is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec

MASK = "<redacted>"
ABSENT = "<absent>"

_IDENTITIES = (
    ("task_id", "attempt_number"),
    ("worker_id", "worker_type"),
    ("actor_id",),
    ("placement_group_id",),
    ("object_id", "pid"),
    ("node_id", "resources_total"),
    ("event_id",),
    ("eventId",),
    ("id", "firstTimestamp"),
    ("submission_id", "job_id"),
    ("pid", "coreWorkerStats"),
)
"""Fields whose values tell rows of one list apart."""

Kind = Literal["anything", "masked", "close", "later", "longer", "shorter", "reordered", "more", "ours"]


class Reviewed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Differences that are meant to be."""

    why: str
    requests: list[str]
    """Names of recorded requests, with `*`."""
    fields: list[str]
    """Paths into status and body, with `*`, which also stands for several steps."""
    allow: Kind = "anything"
    within: float = 0
    """How close two numbers must be."""
    ours: Any = None
    sometimes: bool = False
    """Not every run differs in this."""

    def covers(self, difference: Difference) -> bool:
        return (
            any(fnmatchcase(difference.request, pattern) for pattern in self.requests)
            and any(fnmatchcase(difference.path, pattern) for pattern in self.fields)
            and self._allows(difference)
        )

    def _allows(self, difference: Difference) -> bool:
        theirs, ours = difference.theirs, difference.ours
        if self.allow == "masked":
            return bool(ours == masked(theirs))
        if self.allow == "close":
            return _is_number(theirs) and _is_number(ours) and abs(theirs - ours) <= self.within
        if self.allow == "later":
            return not theirs and _is_number(ours) and ours > 0  # Ray has null or 0 for what is not over
        if self.allow == "longer":
            return str(ours).startswith(str(theirs))
        if self.allow == "shorter":
            return str(theirs).endswith(str(ours))
        if self.allow == "reordered":
            return sorted(map(str, theirs)) == sorted(map(str, ours))
        if self.allow == "more":
            return bool(theirs == ABSENT)
        return self.allow == "anything" or bool(ours == self.ours)


@dataclass(frozen=True)
class Difference:
    request: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.request} {self.path}: Ray {_short(self.theirs)}, we {_short(self.ours)}"


@dataclass
class Review:
    """Sorts differences into those that were reviewed and those that were not."""

    rules: list[Reviewed]
    unexplained: list[Difference] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def look_at(self, differences: Iterable[Difference]) -> None:
        for difference in differences:
            rules = [number for number, rule in enumerate(self.rules) if rule.covers(difference)]
            self.used.update(rules)
            if not rules:
                self.unexplained.append(difference)

    def unused(self) -> list[str]:
        """Reasons for differences that there are no more."""
        missing = [rule for number, rule in enumerate(self.rules) if number not in self.used]
        return [rule.why for rule in missing if not rule.sometimes]


def read_reviewed(path: Path) -> list[Reviewed]:
    return msgspec.yaml.decode(path.read_bytes(), type=list[Reviewed])


def differences(request: str, theirs: object, ours: object) -> Iterator[Difference]:
    """Every field in which two answers differ."""
    for path, ray, we in _differences("", _comparable(theirs), _comparable(ours)):
        yield Difference(request, path, ray, we)


def masked(environment: object) -> str:
    """A runtime environment as Ray shows it to browsers."""
    parsed = json.loads(str(environment))
    return json.dumps({**parsed, "env_vars": dict.fromkeys(parsed["env_vars"], MASK)}, sort_keys=True)


def trace_by_task(trace: list[dict[str, Any]]) -> dict[str, Any]:
    """A Chrome trace without its arbitrary numbers: spans by task, with the names of their node and worker."""
    nodes = {item["pid"]: item["args"]["name"] for item in trace if item["name"] == "process_name"}
    workers = {item["tid"]: item["args"]["name"] for item in trace if item["name"] == "thread_name"}
    spans: dict[str, Any] = {}
    for item in trace:
        if item["ph"] == "X":
            task = f"{item['args']['task_id']}-{item['args']['attempt_number']}"
            named = {**item, "pid": nodes[item["pid"]], "tid": workers[item["tid"]]}
            spans.setdefault(task, {})[f"{item['cat']} {item['ts']}"] = named
    return spans


def _differences(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            yield from _differences(f"{path}/{name}", theirs.get(name, ABSENT), ours.get(name, ABSENT))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours) and _has_objects(theirs):
        for number, (ray, we) in enumerate(zip(theirs, ours, strict=True)):
            yield from _differences(f"{path}/{number}", ray, we)
    elif theirs != ours:
        yield path, theirs, ours


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _comparable(part) for name, part in value.items()}
    if isinstance(value, list):
        return _keyed([_comparable(part) for part in value])
    return value


def _keyed(rows: list[Any]) -> Any:
    identity = next((names for names in _IDENTITIES if rows and all(_has(row, names) for row in rows)), None)
    if identity is None:
        return rows
    keyed = {
        "-".join(str(row[name]) for name in identity if not isinstance(row[name], dict | list)): row for row in rows
    }
    assert len(keyed) == len(rows), f"{identity} tell not all rows apart"
    return {**keyed, "order": list(dict.fromkeys(str(row[identity[0]]) for row in rows))}


def _has(row: object, names: tuple[str, ...]) -> bool:
    return isinstance(row, Mapping) and all(name in row for name in names)


def _has_objects(rows: list[Any]) -> bool:
    return any(isinstance(row, dict | list) for row in rows)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
