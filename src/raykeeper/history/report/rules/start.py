"""Failures before any code ran, and the failures of code itself."""

from __future__ import annotations

from raykeeper.history.report.failures import WORKER_DIED, FailureSet
from raykeeper.history.report.fingerprint import headline, is_wrapper
from raykeeper.history.report.input import (
    Capacity,
    Explanation,
    ReportInput,
    Resources,
    Waiting,
    in_words,
    parse_resources,
)
from raykeeper.history.report.model import Confidence, Evidence
from raykeeper.history.report.tracebacks import at_frame, folded
from raykeeper.history.text import counted, shortened
from raykeeper.times import from_ns

_UNSCHEDULABLE = {
    "TASK_UNSCHEDULABLE_ERROR": "no node could ever run the task",
    "ACTOR_UNSCHEDULABLE_ERROR": "no node could ever run the actor",
    "TASK_PLACEMENT_GROUP_REMOVED": "its placement group was removed",
    "ACTOR_PLACEMENT_GROUP_REMOVED": "its placement group was removed",
    "WORKER_STARTUP_FAILED": "no worker process could be started",
}


_CONSTRUCTOR = "__init__"
_PRINTED = "lines of stdout:"
"""Before what a command printed, such as `pip install`."""


def failed_environment(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """The runtime environment could not be made, so that nothing of the task ever ran."""
    if failed.error_type != "RUNTIME_ENV_SETUP_FAILED":
        return None
    evidence = (Evidence("task", failed.first.message, from_ns(failed.first_ns)),)
    said = f"a runtime environment failed: {environment_words(failed.first.message) or failed.title}"
    return Explanation(said, Confidence.CERTAIN, evidence, failed.first_ns)


def environment_words(message: str) -> str:
    """What went wrong, in the words of the command that made the environment if one failed, else the exception."""
    printed = [line.strip() for line in message.partition(_PRINTED)[2].splitlines() if line.startswith("    ")]
    errors = [line for line in printed if "error" in line.lower()] or printed
    return shortened(errors[-1] if errors else headline(message))


def unschedulable(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """Ray gave up on finding a node; certain because it says so."""
    said = _UNSCHEDULABLE.get(failed.error_type)
    if said is None:
        return None
    evidence = (Evidence("task", failed.first.message or failed.error_type, from_ns(failed.first_ns)), *_asked(failed))
    return Explanation(said, Confidence.CERTAIN, evidence, failed.first_ns)


def waiting_actor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Calls of an actor that was never given a node wait for what its constructor waits for."""
    owner, _, method = failed.first.function.rpartition(".")
    if not is_waiting(failed) or not failed.first.actor_id or method == _CONSTRUCTOR:
        return None
    made = [one for one in report_input.sets if is_waiting(one) and one.jobs & failed.jobs]
    root = next((one for one in made if one.first.function == f"{owner}.{_CONSTRUCTOR}"), None)
    if root is None:
        return None
    evidence = (Evidence("task", f"{failed.first.function} was called before its actor was", from_ns(failed.first_ns)),)
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def never_scheduled(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """They waited for resources until their job or their owner ended; not what only had to wait for its turn."""
    wanted = parse_resources(failed.first.required_resources)
    if not is_waiting(failed) or _is_in_line(wanted, report_input.capacity):
        return None
    text = f"{counted(failed.never_ran, 'task')} never got a worker before the job ended"
    evidence = (Evidence("task", text, from_ns(failed.first_ns)), *_asked(failed), *_shortage(wanted, report_input))
    title = waited_in_vain(failed.first.function, wanted)
    return Explanation(title, Confidence.LIKELY, evidence, failed.first_ns)


def is_waiting(failed: FailureSet) -> bool:
    """Whether all of them waited for a node until they ended with their job."""
    return failed.error_type == WORKER_DIED and 0 < failed.failures <= failed.never_ran


def waited_at_end(waiting: Waiting, report_input: ReportInput) -> Explanation | None:
    """Why what waited when the cluster ended never ran; None for what only had to wait for its turn."""
    wanted = parse_resources(waiting.required_resources)
    if not wanted or _is_in_line(wanted, report_input.capacity):
        return None
    text = f"{counted(waiting.attempts, 'task')} never got a worker before the cluster ended"
    evidence = (Evidence("task", text), *_shortage(wanted, report_input))
    return Explanation(waited_in_vain(waiting.function, wanted), Confidence.LIKELY, evidence, waiting.since_ns)


def waited_in_vain(function: str, wanted: Resources) -> str:
    words = in_words(wanted)
    return f"{function or 'tasks'} waited for resources that never came{words and f': {words}'}"


def _is_in_line(wanted: Resources, capacity: Capacity) -> bool:
    return capacity.was_given(wanted) and not capacity.shortage(wanted)


def _shortage(wanted: Resources, report_input: ReportInput) -> tuple[Evidence, ...]:
    short = report_input.capacity.shortage(wanted)
    return (Evidence("node", short),) if short else ()


def raised_exception(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """The user's code raised it: there is nothing before it."""
    if failed.error_type != "TASK_EXECUTION_EXCEPTION":
        return None
    evidence = (Evidence("task", folded(failed.first.message), from_ns(failed.first_ns)),)
    confidence = Confidence.LIKELY if is_wrapper(failed.words) else Confidence.CERTAIN
    title = f"{failed.first.called} raised {failed.words}{at_frame(failed.first.message)}"
    return Explanation(title, confidence, evidence, failed.first_ns)


def unexplained(failed: FailureSet, _: ReportInput) -> Explanation:
    """All that is known is what Ray said."""
    evidence = (Evidence("task", failed.first.message or failed.error_type, from_ns(failed.first_ns)),)
    return Explanation(failed.words, Confidence.GUESS, evidence, failed.first_ns)


def _asked(failed: FailureSet) -> tuple[Evidence, ...]:
    resources = in_words(parse_resources(failed.first.required_resources))
    return (Evidence("task", f"required resources: {resources}"),) if resources else ()
