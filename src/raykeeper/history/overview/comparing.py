"""What differs between two runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from raykeeper.history.overview.comparison import (
    ComparedFact,
    ComparedFailure,
    ComparedFunction,
    ComparedRun,
    Comparison,
)
from raykeeper.history.overview.runs import Run
from raykeeper.history.secretpatterns import masked_text

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
