"""Failures that were passed on from others: of an argument, of an inner task, of an actor's constructor."""

from __future__ import annotations

from collections.abc import Iterable

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import (
    Wrapping,
    digest,
    headline,
    innermost_function,
    is_end_alone,
    passed_on_part,
    title_of,
)
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Confidence, Evidence
from raykeeper.history.report.naming import called, phrase
from raykeeper.history.report.rules.drivers import named_in, told_of
from raykeeper.history.report.rules.start import NAMED, UNNAMED, at
from raykeeper.history.report.tracebacks import user_location
from raykeeper.history.text import shortened
from raykeeper.times import from_ns

_HOW = {
    Wrapping.ARGUMENT: "an argument of {name} was the error of {inner}",
    Wrapping.NESTED: "{name} asked for the result of {inner} and got its error",
    Wrapping.OWN: "{name} asked for the result of {inner} and got its error",
}
_RAISED = "TASK_EXECUTION_EXCEPTION"
_CONSTRUCTOR = "creationTaskFailureContext"
_UNAVAILABLE = "ACTOR_UNAVAILABLE"
_END_CHARS = 300


def failed_result(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The task asked for a result that Ray could not give, and says by Ray's own exception why."""
    exception = headline(passed_on_part(failed.first.message))
    kind = named_in(exception) if failed.error_type == _RAISED else None
    if kind is None:
        return None
    name, others = _name(failed), [one for one in report_input.sets if one.id != failed.id and one.jobs & failed.jobs]
    roots = told_of(kind, others, failed.first.message)
    said = f"{name} asked for a result and got {exception}"
    evidence = (Evidence("task", said, from_ns(failed.first_ns), failed.first.address),)
    root = _earliest(roots)
    if root is None:
        title = f"{name} asked for a result that Ray could not give: {shortened(exception)}"
        where = user_location(failed.first.message)
        error, who = shortened(exception), failed.first.who
        return Explanation(title, Confidence.LIKELY, evidence, failed.first_ns, error=error, where=where, who=who)
    confidence = Confidence.CONFIRMED if len(roots) == 1 else Confidence.LIKELY
    return Explanation(root.title, confidence, evidence, root.first_ns, because_of=root.id)


def failed_dependency(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Ray wraps the error of one task into that of every task that needed its result."""
    part = passed_on_part(failed.first.message)
    inner, title = innermost_function(part), title_of(digest(part))
    is_own = failed.wrapping is Wrapping.OWN
    if is_own and (failed.error_type != _RAISED or inner in (None, failed.first.function, failed.first.name)):
        return None
    alike = [one for one in report_input.sets if one.id != failed.id and one.wrapping is Wrapping.OWN]
    alike = [one for one in alike if one.title == title]
    root = _earliest(one for one in alike if inner in one.functions or inner == one.first.name)
    how = _HOW[failed.wrapping].format(name=_name(failed), inner=inner or "another task")
    evidence = (Evidence("task", how, from_ns(failed.first_ns), failed.first.address),)
    if root is not None:
        return Explanation(root.title, Confidence.CONFIRMED, evidence, root.first_ns, because_of=root.id)
    if is_own:
        return None
    if like := _earliest(alike):  # tasks with names of their own are counted by their function
        return Explanation(like.title, Confidence.LIKELY, evidence, like.first_ns, because_of=like.id)
    error, where = shortened(headline(part)), user_location(part)
    told, who = f"{inner or 'another task'} raised {error}", called(inner or "another task")
    return Explanation(
        told, Confidence.LIKELY, evidence, failed.first_ns, error=error, where=where, who=who, what=phrase(who)
    )


def failed_alike(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Of its exception Ray kept the end, which is that of a failure that is known in full."""
    if failed.error_type != _RAISED or not is_end_alone(failed.first.message):
        return None
    end = failed.first.message[-_END_CHARS:].strip()
    root = _earliest(one for one in report_input.sets if one.id != failed.id and end in one.first.message)
    if root is None:
        return None
    said = f"the error of {_name(failed)} ends as that one does"
    evidence = (Evidence("task", said, from_ns(failed.first_ns), failed.first.address),)
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def _name(failed: FailureSet) -> str:
    return failed.first.name or failed.first.function or "a task"


def failed_constructor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Methods of an actor fail because its `__init__` did."""
    if failed.error_type != "ACTOR_DIED" or _CONSTRUCTOR not in failed.first.actor_death:
        return None
    text = f"actor {failed.first.class_name or failed.first.actor_id} died because its constructor raised an exception"
    evidence = (Evidence("actor", text, from_ns(failed.first.actor_end_ns), failed.first.address),)
    made = _earliest(
        one
        for one in report_input.sets
        if one.wrapping is Wrapping.OWN and one.first.actor_id == failed.first.actor_id and _is_constructor(one)
    )
    if made is None or made.id == failed.id:
        where = user_location(failed.first.message)
        return Explanation(
            f"constructor failed: {failed.words}{at(where)}",
            Confidence.CONFIRMED if where else Confidence.LIKELY,
            evidence,
            failed.first.actor_end_ns,
            error=failed.words,
            where=where,
            who=failed.first.who,
            what=f"the constructor of {failed.first.who.text}",
            basis=NAMED if where else UNNAMED,
        )
    return Explanation(made.title, Confidence.CONFIRMED, evidence, made.first_ns, because_of=made.id)


def restarting_actor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """A call that came while its actor was being restarted follows from what had ended the actor."""
    if failed.error_type != _UNAVAILABLE or failed.first.worker_id:
        return None
    ended = _earliest(
        one
        for one in _earlier(failed, report_input)
        if one.first.actor_id == failed.first.actor_id and one.error_type == _UNAVAILABLE and one.first.worker_id
    )
    evidence = (Evidence("task", failed.first.message, from_ns(failed.first_ns), failed.first.address),)
    if ended is None:
        return Explanation("its actor was being restarted", Confidence.LIKELY, evidence, failed.first_ns)
    return Explanation(ended.title, Confidence.LIKELY, evidence, ended.first_ns, because_of=ended.id)


def _is_constructor(one: FailureSet) -> bool:
    return one.first.function.endswith(".__init__")


def _earlier(failed: FailureSet, report_input: ReportInput) -> Iterable[FailureSet]:
    return (one for one in report_input.sets if one.id != failed.id and one.first_ns <= failed.first_ns)


def _earliest(sets: Iterable[FailureSet]) -> FailureSet | None:
    return min(sets, key=lambda one: (one.first_ns, one.id), default=None)
