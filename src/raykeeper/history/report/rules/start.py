"""Failures before any code ran, and the failures of code itself."""

from __future__ import annotations

from raykeeper.history.report.excerpts import trace_excerpt
from raykeeper.history.report.failures import WORKER_DIED, FailedAttempt, FailureSet
from raykeeper.history.report.fingerprint import headline
from raykeeper.history.report.input import (
    Capacity,
    Explanation,
    ReportInput,
    Resources,
    Waiting,
    in_words,
    parse_resources,
)
from raykeeper.history.report.model import CodeLocation, Confidence, Evidence, Excerpt, Who, WhoKind
from raykeeper.history.report.naming import short
from raykeeper.history.report.tracebacks import folded, is_wrapper, tracebacks_in
from raykeeper.history.report.written_before import WrittenException, exception_above, words_of_command
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
UNMADE_ENVIRONMENT = "Ray says why it could not make the environment"


def failed_environment(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """The runtime environment could not be made, so that nothing of the task ever ran."""
    if failed.error_type != "RUNTIME_ENV_SETUP_FAILED":
        return None
    first = failed.first
    evidence = (Evidence("task", first.message, from_ns(failed.first_ns), first.address),)
    error = environment_words(first.message) or failed.words
    return Explanation(
        f"a runtime environment failed: {error}",
        Confidence.CONFIRMED,
        evidence,
        failed.first_ns,
        error=error,
        who=first.who,
        what=f"the runtime environment of {first.who.text} could not be made",
        basis=UNMADE_ENVIRONMENT,
    )


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
    first = failed.first
    fact = Evidence("task", first.message or failed.error_type, from_ns(failed.first_ns), first.address)
    title = f"{said} ({short(first.who, first.function)})"
    return Explanation(
        title,
        Confidence.CONFIRMED,
        (fact, *_asked(failed)),
        failed.first_ns,
        who=first.who,
        basis="Ray says that it gave up on it",
    )


def waiting_actor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Calls of an actor that was never given a node wait for what its constructor waits for."""
    owner, _, method = failed.first.function.rpartition(".")
    if not is_waiting(failed) or not failed.first.actor_id or method == _CONSTRUCTOR:
        return None
    made = [one for one in report_input.sets if is_waiting(one) and one.jobs & failed.jobs]
    root = next((one for one in made if one.first.function == f"{owner}.{_CONSTRUCTOR}"), None)
    if root is None:
        return None
    said = f"{failed.first.function} was called before its actor was"
    evidence = (Evidence("task", said, from_ns(failed.first_ns), failed.first.address),)
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def never_scheduled(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """They waited for resources until their job or their owner ended; not what only had to wait for its turn."""
    wanted = parse_resources(failed.first.required_resources)
    if not is_waiting(failed) or _is_in_line(wanted, report_input.capacity):
        return None
    text = f"{counted(failed.never_ran, 'task')} never got a worker before the job ended"
    fact = Evidence("task", text, from_ns(failed.first_ns), failed.first.address)
    short_of = _shortage(wanted, report_input)
    who = Who(WhoKind.TASK, failed.first.function)
    return Explanation(
        waited_in_vain(failed.first.function, wanted),
        Confidence.LIKELY,
        (fact, *_asked(failed), *short_of),
        failed.first_ns,
        who=who,
        then=_sentence(short_of),
        basis="it waited for a node until the job ended",
    )


def is_waiting(failed: FailureSet) -> bool:
    """Whether all of them waited for a node until they ended with their job."""
    return failed.error_type == WORKER_DIED and 0 < failed.failures <= failed.never_ran


def waited_at_end(waiting: Waiting, report_input: ReportInput) -> Explanation | None:
    """Why what waited when the cluster ended never ran; None for what only had to wait for its turn."""
    wanted = parse_resources(waiting.required_resources)
    if not wanted or _is_in_line(wanted, report_input.capacity):
        return None
    text = f"{counted(waiting.attempts, 'task')} never got a worker before the cluster ended"
    short_of = _shortage(wanted, report_input)
    return Explanation(
        waited_in_vain(waiting.function, wanted),
        Confidence.LIKELY,
        (Evidence("task", text), *short_of),
        waiting.since_ns,
        who=Who(WhoKind.TASK, waiting.function),
        then=_sentence(short_of),
        basis="it waited for a node until the cluster ended",
    )


def waited_in_vain(function: str, wanted: Resources) -> str:
    words = in_words(wanted)
    return f"{function or 'tasks'} waited for resources that never came{words and f': {words}'}"


def _is_in_line(wanted: Resources, capacity: Capacity) -> bool:
    return capacity.was_given(wanted) and not capacity.shortage(wanted)


def _sentence(facts: tuple[Evidence, ...]) -> str:
    return " ".join(fact.text for fact in facts[:1])


def _shortage(wanted: Resources, report_input: ReportInput) -> tuple[Evidence, ...]:
    short = report_input.capacity.shortage(wanted)
    return (Evidence("node", short),) if short else ()


_RAISED = "TASK_EXECUTION_EXCEPTION"
NAMED = "the traceback names the line that raised it"
UNNAMED = "no line of the user's code is known"
POINTED = "the exception points to it, and it was written before"


def raised_exception(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """The user's code raised it: there is nothing before it."""
    if failed.error_type != _RAISED:
        return None
    first = failed.first
    where, excerpts = _traced(first)
    if above := exception_above(failed.words, first.logs):
        return _written_above(failed, above, excerpts)
    is_named = where is not None and not is_wrapper(failed.words)
    command = words_of_command(failed.words, first.logs)
    evidence = (Evidence("task", folded(first.message), from_ns(failed.first_ns), first.address),)
    return Explanation(
        f"{short(first.who, first.function)} raised {failed.words}{at(where)}",
        Confidence.CONFIRMED if is_named else Confidence.LIKELY,
        evidence,
        failed.first_ns,
        error=failed.words,
        where=where,
        who=first.who,
        what=first.what,
        then=command and f"the command had written: {command}",
        basis=NAMED if is_named else UNNAMED,
        excerpts=excerpts,
    )


def _written_above(failed: FailureSet, above: WrittenException, excerpts: tuple[Excerpt, ...]) -> Explanation:
    """The exception points to another one, which a process had written before."""
    first, raised = failed.first, above.raised
    frame = raised.users_frame
    where = frame.location if frame else None
    told = Evidence("task", folded(first.message), from_ns(failed.first_ns), first.address)
    written = Evidence("log", "\n".join(line.text for line in above.excerpt.lines), None, above.excerpt.address)
    return Explanation(
        shortened(f"{short(first.who, first.function)} failed of {raised.error}{at(where)}: {failed.words}"),
        Confidence.LIKELY,
        (written, told),
        failed.first_ns,
        error=shortened(raised.error),
        where=where,
        who=first.who,
        what=first.what,
        then=failed.words,
        basis=POINTED,
        excerpts=(above.excerpt, *excerpts),
    )


def _traced(first: FailedAttempt) -> tuple[CodeLocation | None, tuple[Excerpt, ...]]:
    """Where in the user's code it was raised, and the lines of its traceback that matter."""
    found = tracebacks_in(first.message)
    if not found:
        return None, ()
    raised = found[-1].users
    frame = raised.users_frame
    title = f"traceback of {short(first.who, first.function)}"
    return frame.location if frame else None, (trace_excerpt(title, first.message, raised, first.address),)


def at(where: CodeLocation | None) -> str:
    """A place, to stand behind other words."""
    return f" ({where.text})" if where else ""


def unexplained(failed: FailureSet, _: ReportInput) -> Explanation:
    """All that is known is what Ray said."""
    first = failed.first
    evidence = (Evidence("task", first.message or failed.error_type, from_ns(failed.first_ns), first.address),)
    return Explanation(failed.words, Confidence.POSSIBLE, evidence, failed.first_ns, who=first.who, what=first.what)


def _asked(failed: FailureSet) -> tuple[Evidence, ...]:
    resources = in_words(parse_resources(failed.first.required_resources))
    return (Evidence("task", f"required resources: {resources}"),) if resources else ()
