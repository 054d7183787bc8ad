"""Failures that come from below the user's code: memory, nodes, worker processes, lost objects."""

from __future__ import annotations

from raykeeper.history.report.failures import FailedAttempt, FailureSet
from raykeeper.history.report.model import Evidence, Sureness
from raykeeper.history.report.situation import Explanation, Situation, moment

_MEMORY_EXIT = "NODE_OUT_OF_MEMORY"
_CRASHES = ("SYSTEM_ERROR", "USER_ERROR")
"""Exit types of workers that nobody asked to end."""
_OF_WORKER_LOSS = frozenset({"WORKER_DIED", "ACTOR_DIED", "ACTOR_UNAVAILABLE"})
"""Errors that the death of a worker shows itself by. Others on the same worker came before it died."""
_OF_NODE_LOSS = _OF_WORKER_LOSS | {
    "NODE_DIED",
    "LOCAL_RAYLET_DIED",
    "OBJECT_LOST",
    "OBJECT_FETCH_TIMED_OUT",
    "OWNER_DIED",
}
"""Errors that the loss of a node shows itself by."""
_LOST_OBJECT = ("OBJECT_", "OWNER_DIED", "OUT_OF_DISK")


def out_of_memory(failed: FailureSet, _: Situation) -> Explanation | None:
    """Ray's memory monitor killed the worker and says so, in the task's error or in the worker's exit."""
    first = failed.first
    exits = {*failed.worker_exits, *_words_of_end(first)}
    was_killed = failed.error_type in _OF_WORKER_LOSS and _MEMORY_EXIT in exits
    if failed.error_type != "OUT_OF_MEMORY" and not was_killed:
        return None
    evidence = [Evidence("task", first.message, moment(first.end_ns))]
    if first.exit_detail:
        evidence.append(Evidence("worker", f"{first.exit_type}: {first.exit_detail}", moment(first.worker_end_ns)))
    where = first.node_ip or first.node_id or "a node"
    title = f"out of memory: Ray killed workers on {where} to free memory"
    at_ns = _earlier(first.worker_end_ns, failed.first_ns)
    return Explanation(title, Sureness.CERTAIN, tuple(evidence), at_ns, subject=first.node_id or "")


def lost_node(failed: FailureSet, _: Situation) -> Explanation | None:
    """The node died about when its tasks failed. Certain where Ray names the node as the reason."""
    first = failed.first
    if failed.error_type not in _OF_NODE_LOSS or not failed.lost_nodes or first.node_end_ns is None:
        return None
    reason = ": ".join(text for text in (first.death_reason, first.death_message) if text) or "no reason was given"
    counted = f"{failed.lost_nodes} of {failed.failures} such failures were on a node that died about then"
    evidence = (Evidence("node", reason, moment(first.node_end_ns)), Evidence("task", counted))
    is_named = failed.error_type == "NODE_DIED" or bool(first.node_id and first.node_id in first.message)
    sureness = Sureness.CERTAIN if is_named else Sureness.LIKELY
    # Workers lose their connections before the head gives the node up, so the failures may be the earlier sign.
    at_ns = _earlier(first.node_end_ns, failed.first_ns)
    title = f"node {first.node_ip or first.node_id} was lost"
    return Explanation(title, sureness, evidence, at_ns, subject=first.node_id or "")


def crashed_worker(failed: FailureSet, _: Situation) -> Explanation | None:
    """The worker process ended without being asked to. That it did is certain; why, Ray does not know."""
    first = failed.first
    if failed.error_type not in _OF_WORKER_LOSS or first.exit_type not in _CRASHES:
        return None
    evidence = (
        Evidence("worker", f"{first.exit_type}: {first.exit_detail or 'no detail'}", moment(first.worker_end_ns)),
        Evidence("task", first.message or failed.error_type, moment(first.end_ns)),
    )
    name = first.name or first.function or "a task"
    at_ns = _earlier(first.worker_end_ns, failed.first_ns)
    return Explanation(f"the worker process that ran {name} died", Sureness.LIKELY, evidence, at_ns)


def dead_actor(failed: FailureSet, situation: Situation) -> Explanation | None:
    """The actor died before these calls: of what ended an earlier call of it, if one is known."""
    first, end = failed.first, failed.first.actor_end
    if failed.error_type != "ACTOR_DIED" or not end:
        return None
    said = str(end.get("errorMessage", "")) or failed.words
    evidence = (Evidence("actor", f"{end.get('reason', 'UNSPECIFIED')}: {said}", moment(first.actor_end_ns)),)
    calls = [one for one in situation.sets if one.first.actor_id == first.actor_id and one.first_ns < failed.first_ns]
    cut = min((one for one in calls if one.first.exit_type in _CRASHES), key=lambda one: one.first_ns, default=None)
    if cut is not None:
        return Explanation(cut.title, Sureness.LIKELY, evidence, cut.first_ns, because_of=cut.id)
    title = f"actor {first.class_name or first.actor_id} died: {said.splitlines()[0]}"
    at_ns = _earlier(first.actor_end_ns, failed.first_ns)
    return Explanation(title, Sureness.CERTAIN, evidence, at_ns, subject=first.actor_id or "")


def _words_of_end(first: FailedAttempt) -> list[str]:
    """Ray names the exit type of an actor's worker within its message."""
    return str(first.actor_end.get("errorMessage", "")).split()


def lost_object(failed: FailureSet, situation: Situation) -> Explanation | None:
    """An object is gone with the node or worker that had it: with the last one that failed before, perhaps."""
    if not failed.error_type.startswith(_LOST_OBJECT):
        return None
    evidence = (Evidence("task", failed.first.message or failed.error_type, moment(failed.first_ns)),)
    before = [one for one in situation.sets if one.first_ns < failed.first_ns and (one.lost_nodes or _died(one))]
    if not before:
        return Explanation(f"an object was lost: {failed.title}", Sureness.GUESS, evidence, failed.first_ns)
    root = max(before, key=lambda one: (one.first_ns, one.id))
    return Explanation(root.title, Sureness.GUESS, evidence, root.first_ns, because_of=root.id)


def _died(one: FailureSet) -> bool:
    return one.error_type == "WORKER_DIED" and not one.job_ends


def _earlier(one_ns: int | None, other_ns: int) -> int:
    return other_ns if one_ns is None else min(one_ns, other_ns)
