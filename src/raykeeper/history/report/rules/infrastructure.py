"""Failures that come from below the user's code: nodes, worker processes, lost objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.report.failures import WORKER_DIED, FailedAttempt, FailureSet, without_advice
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import LastWords, last_words
from raykeeper.history.report.model import Address, Confidence, Evidence, Who, WhoKind
from raykeeper.history.report.naming import actor_who, plain, short
from raykeeper.history.text import shortened
from raykeeper.times import from_ns

_NODE_DIED, _ACTOR_DIED = "NODE_DIED", "ACTOR_DIED"
_CRASHES = ("SYSTEM_ERROR", "USER_ERROR")
"""Exit types of workers that nobody asked to end."""
OF_WORKER_LOSS = frozenset({WORKER_DIED, _ACTOR_DIED, "ACTOR_UNAVAILABLE"})
"""Errors that the death of a worker shows itself by. Others on the same worker came before it died."""
_OF_CALLS = (WORKER_DIED, "ACTOR_UNAVAILABLE")
"""Errors of calls that a worker had begun, or was given, when it died."""
OF_NODE_LOSS = OF_WORKER_LOSS | {
    _NODE_DIED,
    "LOCAL_RAYLET_DIED",
    "OBJECT_LOST",
    "OBJECT_FETCH_TIMED_OUT",
    "OWNER_DIED",
}
"""Errors that the loss of a node shows itself by."""
_NAMES_SHOWN = 3
_EXIT_CODE = re.compile(r"exits with an exit code (-?\d+)")
_NODE_ADDRESS = re.compile(r"Node IP: ([^\s,]+)")
_LOST_OBJECT = ("OBJECT_", "OWNER_DIED", "OUT_OF_DISK")


def lost_node(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """Ray names the node as the reason, or the node died about when its tasks failed."""
    first = failed.first
    is_named = failed.error_type == _NODE_DIED or bool(first.node_id and first.node_id in first.message)
    died_then = bool(failed.lost_nodes) and first.node_end_ns is not None
    if failed.error_type not in OF_NODE_LOSS or not (died_then or failed.error_type == _NODE_DIED):
        return None
    # Workers lose their connections before the head gives the node up, so the failures may be the earlier sign.
    at_ns = earlier(first.node_end_ns, failed.first_ns)
    confidence = Confidence.CONFIRMED if is_named else Confidence.LIKELY
    node, functions = _node_name(first), functions_of(failed)
    return Explanation(
        f"node {node} was lost while {functions} ran on it",
        confidence,
        tuple(_node_evidence(failed)),
        at_ns,
        subject=first.node_id or "",
        who=Who(WhoKind.NODE, node),
        what=f"node {node}, while {functions} ran on it",
        basis="Ray names the node" if is_named else "the node died about when its tasks failed",
    )


def _node_evidence(failed: FailureSet) -> Iterator[Evidence]:
    first = failed.first
    if first.node_end_ns is not None:
        reason = ": ".join(text for text in (first.death_reason, first.death_message) if text) or "no reason was given"
        yield Evidence("node", reason, from_ns(first.node_end_ns), Address(node_id=first.node_id or ""))
    if failed.lost_nodes:
        yield Evidence("task", f"{failed.lost_nodes} of {failed.failures} such failures were on a node that died then")
    if failed.error_type == _NODE_DIED:
        yield Evidence("task", first.message, from_ns(first.end_ns), first.address)


def _node_name(first: FailedAttempt) -> str:
    named = _NODE_ADDRESS.search(first.message)
    return first.node_ip or (named[1] if named else None) or first.node_id or "of no name"


def crashed_worker(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The worker process ended without being asked to. That it did is certain; why, Ray does not know.

    Ray 2.52 tells of no worker's end, only that a task's worker died.
    """
    first = failed.first
    is_unrecorded = failed.error_type in _OF_CALLS and first.exit_type is None and first.worker_id is not None
    if failed.error_type not in OF_WORKER_LOSS or not (first.exit_type in _CRASHES or is_unrecorded):
        return None
    said = without_advice(f"{first.exit_type}: {first.exit_detail or 'no detail'}")
    end = () if is_unrecorded else (Evidence("worker", said, from_ns(first.worker_end_ns), first.address),)
    told = without_advice(first.message) or failed.error_type
    task = Evidence("task", told, from_ns(first.end_ns), first.address)
    last = last_words(first.logs)
    return Explanation(
        _with_words(_crash_title(first, report_input), last),
        Confidence.LIKELY,
        (*last.evidence, *end, task),
        earlier(first.worker_end_ns, failed.first_ns),
        subject=first.actor_id or f"{first.job_id} {first.function}",  # tries of one task fail in various words
        error=last.text if last.is_error else "",
        where=last.where,
        who=crashed_who(first),
        what=_crash_what(first),
        basis=basis_of(last),
        excerpts=last.excerpts,
    )


def _crash_title(first: FailedAttempt, report_input: ReportInput) -> str:
    name = first.name or first.function or "a task"
    code = _EXIT_CODE.search(first.exit_detail or first.message)
    how = f" with exit code {code[1]}" if code else ""
    if not first.actor_id:
        return f"the worker process that ran {short(first.who, name)} died{how}"
    is_over = any(one.error_type == _ACTOR_DIED and one.first.actor_id == first.actor_id for one in report_input.sets)
    end = ", and no restart was left" if is_over else ""
    return f"the process of {crashed_who(first).text} died{how}{_within(first, ' before {} ended')}{end}"


def _crash_what(first: FailedAttempt) -> str:
    if not first.actor_id:
        return f"the process of {first.who.text} died"
    return f"{first.trial_text or crashed_who(first).text} died{_within(first, ' in {}')}"


def _within(first: FailedAttempt, words: str) -> str:
    """Which method it was in, of an actor of the user's own: those of Ray's libraries say nothing to their users."""
    is_own = crashed_who(first).kind is WhoKind.ACTOR
    return words.format(plain(first.name or first.function)) if is_own else ""


def crashed_who(first: FailedAttempt) -> Who:
    """An actor as such, whatever its method; else what ran."""
    if not first.actor_id or first.who.kind is not WhoKind.TASK:
        return first.who
    return actor_who(first.actor_name or "", first.class_name or "", first.actor_id)


def _with_words(title: str, last: LastWords) -> str:
    return shortened(f"{title}, its last words: {last.text}" if last.text else title)


def basis_of(last: LastWords) -> str:
    """Why a process that died is no more than a likely cause."""
    said = "Ray only says that the process ended"
    return f"{said}; these are its last words" if last.text else f"{said}, and it wrote nothing before"


def crashed_constructor(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """An actor's process died in its `__init__`, too early to say that it ran."""
    first, end = failed.first, failed.first.actor_end
    is_constructor = first.function.endswith(".__init__") and not first.worker_id
    if failed.error_type != WORKER_DIED or not is_constructor or end.get("reason") != WORKER_DIED:
        return None
    said = first_words(str(end.get("errorMessage", "")))
    last = last_words(first.logs)
    return Explanation(
        _with_words(f"the process of {crashed_who(first).text} died{_within(first, ' before {} ended')}", last),
        Confidence.LIKELY,
        (*last.evidence, Evidence("actor", said, from_ns(first.actor_end_ns), first.address)),
        earlier(first.actor_end_ns, failed.first_ns),
        subject=first.actor_id or "",
        rule=crashed_worker.__name__,
        error=last.text if last.is_error else "",
        where=last.where,
        who=crashed_who(first),
        what=_crash_what(first),
        basis=basis_of(last),
        excerpts=last.excerpts,
    )


def dead_actor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The actor died before these calls: of what ended an earlier call of it, if one is known."""
    first, end = failed.first, failed.first.actor_end
    if failed.error_type != _ACTOR_DIED or not end:
        return None
    said = str(end.get("errorMessage", "")) or failed.words
    reason = str(end.get("reason", "UNSPECIFIED"))
    told = without_advice(f"{reason}: {said}")
    evidence = (Evidence("actor", told, from_ns(first.actor_end_ns), first.address),)
    cut = _crash_of_actor(failed, report_input)
    if cut is not None:
        return Explanation(cut.title, Confidence.LIKELY, evidence, cut.first_ns, because_of=cut.id)
    who, last = crashed_who(first), last_words(first.logs) if reason == WORKER_DIED else LastWords()
    title = f"{who.text} died: {first_words(said)}"
    return Explanation(
        _with_words(f"the process of {who.text} died", last) if last.text else title,
        Confidence.LIKELY if reason == WORKER_DIED else Confidence.CONFIRMED,
        (*last.evidence, *evidence),
        earlier(first.actor_end_ns, failed.first_ns),
        subject=first.actor_id or "",
        error=last.text if last.is_error else "",
        where=last.where,
        who=who,
        what=f"{who.text} died",
        basis=basis_of(last) if reason == WORKER_DIED else "Ray says why",
        excerpts=last.excerpts,
    )


def _crash_of_actor(failed: FailureSet, report_input: ReportInput) -> FailureSet | None:
    """The constructor that the actor died in, or the first call before these that it died in."""
    calls = [one for one in report_input.sets if one.first.actor_id == failed.first.actor_id and one.id != failed.id]
    crashes = [one for one in calls if one.first_ns < failed.first_ns and crashed_worker(one, report_input)]
    made = [one for one in calls if crashed_constructor(one, report_input)]
    return min(made or crashes, key=lambda one: one.first_ns, default=None)


def first_words(said: str) -> str:
    """What Ray says of this death, without its advice."""
    return shortened(without_advice((said.splitlines() or [""])[0]).strip())


def lost_object(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """An object is gone with the node or worker that had it: with the last one that failed before, perhaps."""
    if not failed.error_type.startswith(_LOST_OBJECT):
        return None
    first = failed.first
    evidence = (Evidence("task", first.message or failed.error_type, from_ns(failed.first_ns), first.address),)
    before = [one for one in report_input.sets if one.first_ns < failed.first_ns and (one.lost_nodes or _died(one))]
    if not before:
        title = f"an object was lost: {failed.words}"
        return Explanation(title, Confidence.POSSIBLE, evidence, failed.first_ns, who=first.who)
    root = max(before, key=lambda one: (one.first_ns, one.id))
    return Explanation(root.title, Confidence.POSSIBLE, evidence, root.first_ns, because_of=root.id)


def _died(one: FailureSet) -> bool:
    return one.error_type == WORKER_DIED and not one.job_ends


def functions_of(failed: FailureSet) -> str:
    """The functions that failed so."""
    shown = list(failed.functions)[:_NAMES_SHOWN]
    more = ", ..." if len(failed.functions) > _NAMES_SHOWN else ""
    return ", ".join(shown) + more or "workers"


def earlier(one_ns: int | None, other_ns: int) -> int:
    return other_ns if one_ns is None else min(one_ns, other_ns)
