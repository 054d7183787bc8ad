"""Processes that died without being asked to, and that no failed task tells of."""

from __future__ import annotations

from raykeeper.history.report.deaths import Death
from raykeeper.history.report.fingerprint import headline
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import last_words
from raykeeper.history.report.model import Confidence, Evidence
from raykeeper.history.report.rules.infrastructure import basis_of, first_words
from raykeeper.history.report.rules.intended import is_ended_by_ray, was_asked_for
from raykeeper.history.report.rules.kubernetes import explanation_of, pod_failure_near
from raykeeper.history.report.rules.memory import memory_words
from raykeeper.history.report.tracebacks import user_location
from raykeeper.history.text import shortened
from raykeeper.times import from_ns, to_ns

_INTERNAL = "_ray_internal_"
"""How names of Ray's own actors begin: supervisors of jobs, whose ends the jobs tell of."""
_MEMORY_EXIT = "NODE_OUT_OF_MEMORY"
_EXPECTED_NODE_ENDS = ("EXPECTED_TERMINATION", "AUTOSCALER_DRAIN_IDLE")
_CONSTRUCTOR = "creationTaskFailureContext"
_MEMORY = "oomContext"
_NODE_DIED = "NODE_DIED"


def unasked_death(death: Death, report_input: ReportInput) -> Explanation | None:
    """Why the process died; None where somebody had asked for it, or its job or its node was at an end."""
    if _is_intended(death, report_input):
        return None
    at = from_ns(death.at_ns)
    pod = pod_failure_near(report_input, death.node_id, death.node_ip, at)
    if pod is not None:
        return explanation_of(pod, Confidence.CONFIRMED)
    told = _told_by_ray(death)
    last = last_words(death.logs)
    title = f"{death.words_for_it} {told or 'died'}"
    if last.text and not told:
        title = f"{title}, its last words: {last.text}"
    said = Evidence("actor" if death.actor_id else "worker", _evidence(death), at, death.address)
    raised = headline(_raised(death)) if _is_of_constructor(death) else ""
    return Explanation(
        shortened(title),
        Confidence.CONFIRMED if told else Confidence.LIKELY,
        (*last.evidence, said),
        death.at_ns,
        subject=f"{death.job_id} {death.kind}",
        error=raised or ("" if told or not last.is_error else last.text),
        where=user_location(_raised(death)) if raised else last.where,
        who=death.who,
        what=f"{death.words_for_it} {'died' if not told or raised else told}",
        basis="Ray says why" if told else basis_of(last),
        excerpts=last.excerpts,
    )


def _is_intended(death: Death, report_input: ReportInput) -> bool:
    if death.name.startswith(_INTERNAL) or was_asked_for(death.context) or is_ended_by_ray(death.words):
        return True
    if death.node_death.startswith(_EXPECTED_NODE_ENDS):
        return True
    job = report_input.jobs_by_id.get(death.job_id)
    return not death.is_detached and job is not None and job.ended_at is not None and death.at_ns >= to_ns(job.ended_at)


def _told_by_ray(death: Death) -> str:
    """What became of it, where Ray itself knows why; else nothing."""
    if death.exit_type == _MEMORY_EXIT or _MEMORY in death.actor_death or _MEMORY_EXIT in death.words:
        return f"was killed by Ray to free memory on {death.node_ip or death.node_id or 'its node'}"
    if _is_of_constructor(death):
        return f"died because its constructor raised {headline(_raised(death))}"
    if death.context.get("reason") == _NODE_DIED:
        return f"died with its node {death.node_ip or death.node_id}"
    if death.actor_death and "actorDiedErrorContext" not in death.actor_death:  # it never came to be
        return f"could not be made: {headline(death.words)}"
    return ""


def _is_of_constructor(death: Death) -> bool:
    return _CONSTRUCTOR in death.actor_death or "exception in the initialization method" in death.words


def _raised(death: Death) -> str:
    return str(death.context.get("formattedExceptionString") or "") or death.words


def _evidence(death: Death) -> str:
    said = memory_words(death.words) if death.exit_type == _MEMORY_EXIT else first_words(death.words)
    kind = death.exit_type or str(death.context.get("reason", "")) or "it died"
    return f"{kind}: {said}" if said else kind
