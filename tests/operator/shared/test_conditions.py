"""Conditions say what was found, and leave alone what others said."""

from __future__ import annotations

from datetime import UTC, datetime

from raykeeper.api.conditions import Condition
from raykeeper.operator.shared.conditions import Finding, foreign, updated

OURS = frozenset({"Ready", "Failure"})
THEN, NOW = "2026-01-01T00:00:00Z", datetime(2026, 1, 2, tzinfo=UTC)
IDLE = Condition("example.com/Idle", "True", "NoTasks", "for an hour", THEN, 3)
READY = Condition("Ready", "True", "AllUp", "", THEN, 3)
FAILURE = Condition("Failure", "True", "Refused", "", THEN, 3)


def test_what_others_wrote_stays_where_it_was() -> None:
    conditions = updated((IDLE, READY), [Finding("Ready", "False", "Down")], OURS, 4, NOW)
    assert conditions == (IDLE, Condition("Ready", "False", "Down", "", "2026-01-02T00:00:00Z", 4))


def test_what_is_ours_and_no_longer_found_goes() -> None:
    assert updated((FAILURE, READY, IDLE), [Finding("Ready", "True", "AllUp")], OURS, 3, NOW) == (READY, IDLE)


def test_the_time_moves_only_with_the_status() -> None:
    (condition,) = updated((READY,), [Finding("Ready", "True", "StillUp", "yes")], OURS, 4, NOW)
    assert condition == Condition("Ready", "True", "StillUp", "yes", THEN, 4)


def test_conditions_of_others_are_told_from_ours() -> None:
    assert foreign((READY, IDLE, FAILURE), OURS) == (IDLE,)
