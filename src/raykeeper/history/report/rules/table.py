"""The table of rules: for each set of failures the first that answers is believed, so the strongest stand first."""

from __future__ import annotations

from collections.abc import Callable

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.rules.infrastructure import (
    crashed_constructor,
    crashed_worker,
    dead_actor,
    lost_node,
    lost_object,
)
from raykeeper.history.report.rules.intended import cancelled, ended_actor, ended_with_job
from raykeeper.history.report.rules.kubernetes import missing_workers, troubled_pod
from raykeeper.history.report.rules.memory import out_of_memory
from raykeeper.history.report.rules.passed_on import (
    failed_alike,
    failed_constructor,
    failed_dependency,
    failed_result,
    restarting_actor,
)
from raykeeper.history.report.rules.start import (
    failed_environment,
    never_scheduled,
    raised_exception,
    unexplained,
    unschedulable,
    waiting_actor,
)

Rule = Callable[[FailureSet, ReportInput], Explanation | None]

RULES: tuple[Rule, ...] = (
    failed_environment,
    unschedulable,
    failed_result,
    failed_dependency,
    failed_alike,
    raised_exception,
    failed_constructor,
    cancelled,
    out_of_memory,
    troubled_pod,
    lost_node,
    missing_workers,
    crashed_constructor,
    waiting_actor,
    never_scheduled,
    ended_with_job,
    ended_actor,
    crashed_worker,
    dead_actor,
    restarting_actor,
    lost_object,
)
"""What Ray itself says comes before what is inferred from time and place."""


def explain(failed: FailureSet, report_input: ReportInput) -> tuple[str, Explanation]:
    """The name of the rule that knows why, and what it says."""
    for rule in RULES:
        found = rule(failed, report_input)
        if found is not None:
            return found.rule or rule.__name__, found
    return unexplained.__name__, unexplained(failed, report_input)
