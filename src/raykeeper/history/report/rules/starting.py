"""Failures before any code ran, and the failures of code itself."""

from __future__ import annotations

import msgspec

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.model import Evidence, Sureness
from raykeeper.history.report.situation import Explanation, Situation, moment

_UNSCHEDULABLE = {
    "TASK_UNSCHEDULABLE_ERROR": "no node could ever run the task",
    "ACTOR_UNSCHEDULABLE_ERROR": "no node could ever run the actor",
    "TASK_PLACEMENT_GROUP_REMOVED": "its placement group was removed",
    "ACTOR_PLACEMENT_GROUP_REMOVED": "its placement group was removed",
}


def failed_environment(failed: FailureSet, _: Situation) -> Explanation | None:
    """The runtime environment could not be made, so that nothing of the task ever ran."""
    if failed.error_type != "RUNTIME_ENV_SETUP_FAILED":
        return None
    evidence = (Evidence("task", failed.first.message, moment(failed.first_ns)),)
    return Explanation(f"a runtime environment failed: {failed.words}", Sureness.CERTAIN, evidence, failed.first_ns)


def unschedulable(failed: FailureSet, _: Situation) -> Explanation | None:
    """Ray gave up on finding a node; certain because it says so."""
    said = _UNSCHEDULABLE.get(failed.error_type)
    if said is None:
        return None
    evidence = (Evidence("task", failed.first.message or failed.error_type, moment(failed.first_ns)), *_asked(failed))
    return Explanation(said, Sureness.CERTAIN, evidence, failed.first_ns)


def never_scheduled(failed: FailureSet, _: Situation) -> Explanation | None:
    """They waited for resources until their job or their owner ended."""
    if failed.error_type != "WORKER_DIED" or failed.never_ran < failed.failures:
        return None
    text = f"{failed.never_ran} were never given to a worker before their job ended"
    evidence = (Evidence("task", text, moment(failed.first_ns)), *_asked(failed))
    wanted = _resources(failed.first.required_resources)
    title = f"{failed.first.function or 'tasks'} waited for resources that never came{wanted and f': {wanted}'}"
    return Explanation(title, Sureness.LIKELY, evidence, failed.first_ns)


def raised_exception(failed: FailureSet, _: Situation) -> Explanation | None:
    """The user's code raised it: there is nothing before it."""
    if failed.error_type != "TASK_EXECUTION_EXCEPTION":
        return None
    evidence = (Evidence("task", failed.first.message, moment(failed.first_ns)),)
    name = failed.first.function or failed.first.name or "a task"
    return Explanation(f"{name} raised {failed.words}", Sureness.CERTAIN, evidence, failed.first_ns)


def unexplained(failed: FailureSet, _: Situation) -> Explanation:
    """All that is known is what Ray said."""
    evidence = (Evidence("task", failed.first.message or failed.error_type, moment(failed.first_ns)),)
    return Explanation(failed.words, Sureness.GUESS, evidence, failed.first_ns)


def _asked(failed: FailureSet) -> tuple[Evidence, ...]:
    resources = _resources(failed.first.required_resources)
    return (Evidence("task", f"required resources: {resources}"),) if resources else ()


def _resources(text: str | None) -> str:
    """As people say them: `CPU 1, GPU 4`."""
    try:
        wanted = msgspec.json.decode(text or "{}", type=dict[str, float])
    except msgspec.DecodeError:
        return text or ""
    return ", ".join(f"{name} {number:g}" for name, number in wanted.items())
