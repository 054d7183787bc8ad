"""Failures that were passed on from others: of an argument, of an inner task, of an actor's constructor."""

from __future__ import annotations

from collections.abc import Iterable

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import Wrapping, innermost_function
from raykeeper.history.report.model import Evidence, Sureness
from raykeeper.history.report.situation import Explanation, Situation, moment

_HOW = {
    Wrapping.ARGUMENT: "an argument of {name} was the error of {inner}",
    Wrapping.NESTED: "{name} asked for the result of {inner} and got its error",
}
_CONSTRUCTOR = "creationTaskFailureContext"
_UNAVAILABLE = "ACTOR_UNAVAILABLE"


def failed_dependency(failed: FailureSet, situation: Situation) -> Explanation | None:
    """Ray wraps the error of one task into that of every task that needed its result."""
    if failed.wrapping is Wrapping.OWN:
        return None
    inner = innermost_function(failed.first.message) or "another task"
    how = _HOW[failed.wrapping].format(name=failed.first.name or failed.first.function, inner=inner)
    evidence = (Evidence("task", how, moment(failed.first_ns)),)
    root = _earliest(one for one in _earlier(failed, situation) if _raised(one, failed.title, inner))
    if root is None:
        return Explanation(f"{inner} raised {failed.words}", Sureness.LIKELY, evidence, failed.first_ns)
    return Explanation(root.title, Sureness.CERTAIN, evidence, root.first_ns, because_of=root.id)


def failed_constructor(failed: FailureSet, situation: Situation) -> Explanation | None:
    """Methods of an actor fail because its `__init__` did."""
    if failed.error_type != "ACTOR_DIED" or _CONSTRUCTOR not in failed.first.actor_death:
        return None
    text = f"actor {failed.first.class_name or failed.first.actor_id} died because its constructor raised an exception"
    evidence = (Evidence("actor", text, moment(failed.first.actor_end_ns)),)
    made = _earliest(
        one
        for one in situation.sets
        if one.wrapping is Wrapping.OWN and one.first.actor_id == failed.first.actor_id and _is_constructor(one)
    )
    if made is None or made.id == failed.id:
        return Explanation(f"constructor failed: {failed.words}", Sureness.CERTAIN, evidence, failed.first.actor_end_ns)
    return Explanation(made.title, Sureness.CERTAIN, evidence, made.first_ns, because_of=made.id)


def restarting_actor(failed: FailureSet, situation: Situation) -> Explanation | None:
    """A call that came while its actor was being restarted follows from what had ended the actor."""
    if failed.error_type != _UNAVAILABLE or failed.first.worker_id:
        return None
    ended = _earliest(
        one
        for one in _earlier(failed, situation)
        if one.first.actor_id == failed.first.actor_id and one.error_type == _UNAVAILABLE and one.first.worker_id
    )
    evidence = (Evidence("task", failed.first.message, moment(failed.first_ns)),)
    if ended is None:
        return Explanation("its actor was being restarted", Sureness.LIKELY, evidence, failed.first_ns)
    return Explanation(ended.title, Sureness.LIKELY, evidence, ended.first_ns, because_of=ended.id)


def _is_constructor(one: FailureSet) -> bool:
    return one.first.function.endswith(".__init__")


def _raised(one: FailureSet, title: str, function: str) -> bool:
    return one.wrapping is Wrapping.OWN and one.title == title and function in one.functions


def _earlier(failed: FailureSet, situation: Situation) -> Iterable[FailureSet]:
    return (one for one in situation.sets if one.id != failed.id and one.first_ns <= failed.first_ns)


def _earliest(sets: Iterable[FailureSet]) -> FailureSet | None:
    return min(sets, key=lambda one: (one.first_ns, one.id), default=None)
