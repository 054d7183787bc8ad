"""How long sessions are kept: rules by namespace, the first that fits counts. One small file, read once at start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from raykeeper.settings.yaml_file import (
    YamlFileError,
    elements_of,
    line_of,
    members_of,
    parse_yaml,
    read_yaml_file,
    text_of,
)

MAX_RULES = 200
MIN_AGE = timedelta(hours=1)
"""Younger than this after its end nothing goes, whatever a rule says: its last uploads come in this time."""
FOREVER = timedelta.max
_AGE = re.compile(r"(?P<number>\d{1,5})\s?(?P<unit>[hdw])")
_SECONDS = re.compile(r"(?P<number>\d{1,5})\s?(?P<unit>[smh])")
_SIZE = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,3})?)\s?(?P<power>[kMGTP])(?P<binary>i?)B", re.IGNORECASE)
_AGE_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SHORT_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Outcome(StrEnum):
    """How a session went, as far as retention tells apart."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    UNKNOWN = "unknown"
    """Nobody has read it to its end, so nobody can tell."""


_OUTCOMES = {
    "ok": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "with failures": Outcome.FAILED,
    "stopped": Outcome.STOPPED,
}


def outcome_of(summary: str) -> Outcome:
    """From the outcome of a session's summary, which is the one that pages show. A summary of a session that still
    seemed to run says nothing about how it ended.
    """
    return _OUTCOMES.get(summary, Outcome.UNKNOWN)


@dataclass(frozen=True)
class Rule:
    """What is kept of the namespaces that it fits."""

    name: str
    namespace: str = "*"
    """A pattern such as `team-*`."""
    ages: Mapping[Outcome, timedelta] = field(default_factory=dict)
    """How long sessions of an outcome are kept after their end."""
    any_age: timedelta | None = None
    """The same for every outcome that has no age of its own. Without it, the longest of `ages` counts for them."""
    max_sessions: int | None = None
    """Of one namespace; the oldest go first."""
    max_bytes: int | None = None
    """Of one namespace; the oldest go first."""

    def age_of(self, outcome: Outcome) -> timedelta:
        """How long such a session is kept after its end.

        One whose outcome nobody knows is kept as long as the outcome that is kept longest.
        """
        if outcome in self.ages:
            return self.ages[outcome]
        if outcome is Outcome.UNKNOWN:
            return max(self.age_of(one) for one in Outcome if one is not Outcome.UNKNOWN)
        if self.any_age is not None:
            return self.any_age
        return max(self.ages.values(), default=FOREVER)


KEEP_FOREVER = Rule("default")


@dataclass(frozen=True)
class RetentionPolicy:
    """Which rule a namespace has, and how removal is done."""

    rules: tuple[Rule, ...] = ()
    default: Rule = KEEP_FOREVER
    min_age: timedelta = MIN_AGE
    """After its end, whatever rules say; not in the file."""
    reader_wait: timedelta = timedelta(minutes=10)
    """Between hiding a session and deleting it."""
    records: timedelta = timedelta(days=90)
    """How long it is remembered that a session was removed."""
    interval: timedelta = timedelta(hours=1)
    """Between two sweeps of the history server."""

    def rule_for(self, namespace: str) -> Rule:
        return next((rule for rule in self.rules if fnmatchcase(namespace, rule.namespace)), self.default)


def read_retention_policy(setting: str, path: Path) -> RetentionPolicy:
    """Raises Misconfigured, which names the file and the line."""
    return read_yaml_file(setting, path, parse_retention_policy)


def parse_retention_policy(text: bytes) -> RetentionPolicy:
    """Raises YamlFileError."""
    root = parse_yaml(text, "`rules` or `default`")
    found = members_of(root, ("rules", "default", "reader_wait", "records", "interval"))
    if "rules" not in found and "default" not in found:
        raise YamlFileError(line_of(root), "it has neither `rules` nor `default`: nothing would ever be removed")
    rules = elements_of(found["rules"], "rules", MAX_RULES) if "rules" in found else []
    times = {name: _TIMES[name](found[name]) for name in _TIMES if name in found}
    return RetentionPolicy(
        rules=tuple(map(_rule, rules)),
        default=_limits(found["default"], "default", "*", _LIMITS) if "default" in found else KEEP_FOREVER,
        **times,
    )


def _rule(node: Any) -> Rule:
    known = ("namespace", *_LIMITS)
    given = members_of(node, known)
    if "namespace" not in given:
        raise YamlFileError(line_of(node), "the rule has no namespace; one for all others is called `default`")
    namespace = text_of(given["namespace"])
    return _limits(node, namespace, namespace, known)


def _limits(node: Any, name: str, namespace: str, known: tuple[str, ...]) -> Rule:
    given = members_of(node, known)
    if given.keys() == {"namespace"} or not given:
        raise YamlFileError(line_of(node), f"the rule has no limit: give {', '.join(_LIMITS)}")
    if "keep" in given:
        if text_of(given["keep"]) != "forever" or given.keys() - {"keep", "namespace"}:
            raise YamlFileError(line_of(given["keep"]), "keep can only be `forever`, and then without limits")
        return Rule(name, namespace)
    ages = {outcome: _age_or_forever(given[outcome.value]) for outcome in Outcome if outcome.value in given}
    return Rule(
        name,
        namespace,
        ages,
        _age_or_forever(given["any"]) if "any" in given else None,
        _number(given["sessions"]) if "sessions" in given else None,
        _size(given["size"]) if "size" in given else None,
    )


def _age_or_forever(node: Any) -> timedelta:
    return FOREVER if node.value == "forever" else _age(node)


def _age(node: Any) -> timedelta:
    found = _AGE.fullmatch(text_of(node))
    age = int(found["number"]) * _AGE_UNITS[found["unit"]] if found else timedelta(0)
    if age < MIN_AGE:
        raise YamlFileError(line_of(node), "write hours, days or weeks, at least 1h, such as 12h, 90d or 26w")
    return age


def _short(node: Any) -> timedelta:
    found = _SECONDS.fullmatch(text_of(node))
    if not found:
        raise YamlFileError(line_of(node), "write seconds, minutes or hours, such as 30s, 10m or 1h")
    return int(found["number"]) * _SHORT_UNITS[found["unit"]]


def _interval(node: Any) -> timedelta:
    interval = _short(node)
    if interval < timedelta(seconds=1):
        raise YamlFileError(line_of(node), "the time between two sweeps is at least 1s")
    return interval


def _number(node: Any) -> int:
    text = text_of(node)
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text)):
        raise YamlFileError(line_of(node), "here must be a whole number above 0")
    return int(text)


def _size(node: Any) -> int:
    found = _SIZE.fullmatch(text_of(node))
    if found:
        base = 1024 if found["binary"] else 1000
        size = int(float(found["number"]) * base ** _POWERS[found["power"].lower()])
        if size >= 1:
            return size
    raise YamlFileError(line_of(node), "write a size such as 500GB, 2TiB or 100MB")


_LIMITS = ("keep", *(outcome.value for outcome in Outcome), "any", "sessions", "size")
_TIMES: Mapping[str, Callable[[Any], timedelta]] = {"reader_wait": _short, "records": _age, "interval": _interval}
