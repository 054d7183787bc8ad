"""Which sessions go, and why. Pure, and a session at a time: a million of them need no memory.

Sessions come newest first. A limit on their number or size keeps the newest ones, so that it is decided by what was
kept before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from raykeeper.history.retention_policy import Outcome, RetentionPolicy, Rule, outcome_of
from raykeeper.history.text import size_text
from raykeeper.layout.keys import SessionId
from raykeeper.layout.retention import SessionFacts


@dataclass(frozen=True, slots=True)
class Removal:
    """A session that goes."""

    facts: SessionFacts
    rule: str
    reason: str
    needs_age: timedelta
    """It goes only if it is as old as that when it is looked at anew."""


@dataclass(slots=True)
class _Kept:
    """What of one namespace is kept so far."""

    sessions: int = 0
    bytes: int = 0
    is_full: bool = False
    """A session did not fit any more: those that are older go too, also smaller ones."""


class Planner:
    """Decides about one session after the other, the newest first."""

    def __init__(self, policy: RetentionPolicy, now: datetime, held: frozenset[SessionId] = frozenset()) -> None:
        self._policy = policy
        self._now = now
        self._held = held
        self._rules: dict[str, Rule] = {}
        self._kept: dict[str, _Kept] = {}

    def decide(self, facts: SessionFacts) -> Removal | None:
        """Why the session goes; None where it stays. What must not be removed stays, and counts as kept."""
        rule = self._rule(facts.namespace)
        kept = self._kept.setdefault(facts.namespace, _Kept())
        if self._is_removable(facts):
            limit = rule.age_of(outcome_of(facts.outcome))
            if age_of(facts, self._now) >= limit:
                return Removal(facts, rule.name, _too_old(outcome_of(facts.outcome), limit), limit)
            if reason := _too_many(facts, rule, kept):
                return Removal(facts, rule.name, reason, self._policy.min_age)
        kept.sessions += 1
        kept.bytes += facts.bytes or 0
        return None

    def waits_for_outcome(self, facts: SessionFacts) -> bool:
        """Whether a session would go for some outcome, and stays only because nobody knows which one it had."""
        if facts.outcome or not self._is_removable(facts):
            return False
        rule, age = self._rule(facts.namespace), age_of(facts, self._now)
        shortest = min(rule.age_of(outcome) for outcome in Outcome if outcome is not Outcome.UNKNOWN)
        return shortest <= age < rule.age_of(Outcome.UNKNOWN)

    def _is_removable(self, facts: SessionFacts) -> bool:
        is_over = facts.is_final and age_of(facts, self._now) >= self._policy.min_age
        return is_over and not (self._held and facts.id in self._held)

    def _rule(self, namespace: str) -> Rule:
        rule = self._rules.get(namespace)
        if rule is None:
            rule = self._rules[namespace] = self._policy.rule_for(namespace)
        return rule


def plan(
    sessions: Iterable[SessionFacts],
    policy: RetentionPolicy,
    now: datetime,
    held: frozenset[SessionId] = frozenset(),
) -> Iterator[Removal]:
    """The sessions that go. Assumes that the newest is first."""
    planner = Planner(policy, now, held)
    for facts in sessions:
        if (removal := planner.decide(facts)) is not None:
            yield removal


def age_of(facts: SessionFacts, now: datetime) -> timedelta:
    """Since its end, or since a collector last wrote to it, whichever is later."""
    return now - max(filter(None, (facts.started_at, facts.ended_at, facts.last_written)))


@lru_cache(maxsize=1000)
def _too_old(outcome: Outcome, limit: timedelta) -> str:
    return f"a session {_SAID[outcome]} is kept for {age_text(limit)}"


_SAID = {
    Outcome.FAILED: "that failed",
    Outcome.SUCCEEDED: "that succeeded",
    Outcome.STOPPED: "that was stopped",
    Outcome.UNKNOWN: "whose outcome is not known",
}


def _too_many(facts: SessionFacts, rule: Rule, kept: _Kept) -> str | None:
    if rule.max_sessions is not None and kept.sessions >= rule.max_sessions:
        return f"the namespace keeps its {rule.max_sessions:,} newest sessions"
    if rule.max_bytes is None:
        return None
    kept.is_full = kept.is_full or kept.bytes + (facts.bytes or 0) > rule.max_bytes
    return f"the namespace keeps its newest {size_text(rule.max_bytes)}" if kept.is_full else None


def age_text(age: timedelta) -> str:
    hours = int(age.total_seconds() // 3600)
    return f"{hours // 24} days" if hours % 24 == 0 and hours > 24 else f"{hours} hours"
