"""Failures that come from below the user's code: nodes, worker processes, lost objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.report.deaths import actor_words
from raykeeper.history.report.failures import ADVICE, WORKER_DIED, FailedAttempt, FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import last_line_of, last_words_of
from raykeeper.history.report.model import Confidence, Evidence
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
    confidence = Confidence.CERTAIN if is_named else Confidence.LIKELY
    title = f"node {_node_name(first)} was lost while {functions_of(failed)} ran on it"
    return Explanation(title, confidence, tuple(_node_evidence(failed)), at_ns, subject=first.node_id or "")


def _node_evidence(failed: FailureSet) -> Iterator[Evidence]:
    first = failed.first
    if first.node_end_ns is not None:
        reason = ": ".join(text for text in (first.death_reason, first.death_message) if text) or "no reason was given"
        yield Evidence("node", reason, from_ns(first.node_end_ns))
    if failed.lost_nodes:
        yield Evidence("task", f"{failed.lost_nodes} of {failed.failures} such failures were on a node that died then")
    if failed.error_type == _NODE_DIED:
        yield Evidence("task", first.message, from_ns(first.end_ns))


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
    said = f"{first.exit_type}: {first.exit_detail or 'no detail'}"
    end = () if is_unrecorded else (Evidence("worker", said, from_ns(first.worker_end_ns)),)
    task = Evidence("task", first.message or failed.error_type, from_ns(first.end_ns))
    evidence = (*last_words_of(first.logs), *end, task)
    at_ns = earlier(first.worker_end_ns, failed.first_ns)
    subject = first.actor_id or f"{first.job_id} {first.function}"  # tries of one task fail in various words
    return Explanation(_crash_title(first, report_input), Confidence.LIKELY, evidence, at_ns, subject=subject)


def _crash_title(first: FailedAttempt, report_input: ReportInput) -> str:
    name = first.name or first.function or "a task"
    code = _EXIT_CODE.search(first.exit_detail or first.message)
    how = f" with exit code {code[1]}" if code else ""
    last = last_line_of(first.logs)
    words = f", its last words: {last}" if last else ""
    if not first.actor_id:
        return shortened(f"the worker process that ran {name} died{how}{words}")
    is_over = any(one.error_type == _ACTOR_DIED and one.first.actor_id == first.actor_id for one in report_input.sets)
    end = ", and no restart was left" if is_over else ""
    return shortened(f"the process of {actor_words_of(first)} died{how} before {name} ended{end}{words}")


def actor_words_of(first: FailedAttempt) -> str:
    return actor_words(first.actor_name or "", first.class_name or "", first.actor_id or "of no name")


def crashed_constructor(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """An actor's process died in its `__init__`, too early to say that it ran."""
    first, end = failed.first, failed.first.actor_end
    is_constructor = first.function.endswith(".__init__") and not first.worker_id
    if failed.error_type != WORKER_DIED or not is_constructor or end.get("reason") != WORKER_DIED:
        return None
    said = first_words(str(end.get("errorMessage", "")))
    evidence = (Evidence("actor", said, from_ns(first.actor_end_ns)),)
    title = f"the process of {actor_words_of(first)} died before {first.function} ended"
    at_ns = earlier(first.actor_end_ns, failed.first_ns)
    subject, rule = first.actor_id or "", crashed_worker.__name__
    return Explanation(title, Confidence.LIKELY, evidence, at_ns, subject=subject, rule=rule)


def dead_actor(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The actor died before these calls: of what ended an earlier call of it, if one is known."""
    first, end = failed.first, failed.first.actor_end
    if failed.error_type != _ACTOR_DIED or not end:
        return None
    said = str(end.get("errorMessage", "")) or failed.words
    evidence = (Evidence("actor", f"{end.get('reason', 'UNSPECIFIED')}: {said}", from_ns(first.actor_end_ns)),)
    cut = _crash_of_actor(failed, report_input)
    if cut is not None:
        return Explanation(cut.title, Confidence.LIKELY, evidence, cut.first_ns, because_of=cut.id)
    at_ns, subject = earlier(first.actor_end_ns, failed.first_ns), first.actor_id or ""
    last = last_line_of(first.logs) if end.get("reason") == WORKER_DIED else ""
    if last:
        title = shortened(f"the process of {actor_words_of(first)} died, its last words: {last}")
        return Explanation(title, Confidence.LIKELY, (*last_words_of(first.logs), *evidence), at_ns, subject=subject)
    title = f"{actor_words_of(first)} died: {first_words(said)}"
    return Explanation(title, Confidence.CERTAIN, evidence, at_ns, subject=subject)


def _crash_of_actor(failed: FailureSet, report_input: ReportInput) -> FailureSet | None:
    """The constructor that the actor died in, or the first call before these that it died in."""
    calls = [one for one in report_input.sets if one.first.actor_id == failed.first.actor_id and one.id != failed.id]
    crashes = [one for one in calls if one.first_ns < failed.first_ns and crashed_worker(one, report_input)]
    made = [one for one in calls if crashed_constructor(one, report_input)]
    return min(made or crashes, key=lambda one: one.first_ns, default=None)


def first_words(said: str) -> str:
    """What Ray says of this death, without its advice."""
    return shortened((said.splitlines() or [""])[0].partition(ADVICE)[0].strip())


def lost_object(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """An object is gone with the node or worker that had it: with the last one that failed before, perhaps."""
    if not failed.error_type.startswith(_LOST_OBJECT):
        return None
    evidence = (Evidence("task", failed.first.message or failed.error_type, from_ns(failed.first_ns)),)
    before = [one for one in report_input.sets if one.first_ns < failed.first_ns and (one.lost_nodes or _died(one))]
    if not before:
        return Explanation(f"an object was lost: {failed.title}", Confidence.GUESS, evidence, failed.first_ns)
    root = max(before, key=lambda one: (one.first_ns, one.id))
    return Explanation(root.title, Confidence.GUESS, evidence, root.first_ns, because_of=root.id)


def _died(one: FailureSet) -> bool:
    return one.error_type == WORKER_DIED and not one.job_ends


def functions_of(failed: FailureSet) -> str:
    """The functions that failed so."""
    shown = list(failed.functions)[:_NAMES_SHOWN]
    more = ", ..." if len(failed.functions) > _NAMES_SHOWN else ""
    return ", ".join(shown) + more or "workers"


def earlier(one_ns: int | None, other_ns: int) -> int:
    return other_ns if one_ns is None else min(one_ns, other_ns)
