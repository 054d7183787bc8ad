"""Failures that follow from what Kubernetes did to a pod: looked for in place and time before Ray's own guesses."""

from __future__ import annotations

from datetime import timedelta

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.model import JobOutcome, Sureness
from raykeeper.history.report.rules.infrastructure import OF_NODE_LOSS
from raykeeper.history.report.situation import Explanation, Situation, moment, to_ns
from raykeeper.history.report.troubles import Trouble

_SLACK = timedelta(minutes=2)
"""Between what Kubernetes and what Ray noticed: the head gives a silent node up after a minute at most."""
_SUPERVISOR_DIED = "JOB_SUPERVISOR_ACTOR"


def troubled_pod(failed: FailureSet, situation: Situation) -> Explanation | None:
    """The pod of the node that the tasks were on ended about when they failed."""
    if failed.error_type not in OF_NODE_LOSS:
        return None
    at, pods = moment(failed.first_ns), situation.kubernetes.pods_by_node
    for trouble in situation.kubernetes.troubles:
        is_near = at is not None and abs(trouble.at - at) <= _SLACK
        is_its_pod = _is_pod_of(trouble, pods.get(failed.first.node_id or "", ""), failed.first.node_ip)
        if is_near and is_its_pod and not trouble.keeps_from_starting:
            return explanation_of(trouble, Sureness.CERTAIN)
    return None


def missing_workers(failed: FailureSet, situation: Situation) -> Explanation | None:
    """Tasks waited for nodes whose pods never came up."""
    if not failed.never_ran or failed.never_ran < failed.failures:
        return None
    kept = [one for one in situation.kubernetes.troubles if one.keeps_from_starting and not one.is_of_head]
    return explanation_of(kept[0], Sureness.LIKELY) if kept else None


def job_with_lost_pod(job: JobOutcome, situation: Situation) -> Explanation | None:
    """The process that watched the driver ended with the pod it ran in."""
    if job.status != "FAILED" or not (job.error_type or "").startswith(_SUPERVISOR_DIED) or job.ended_at is None:
        return None
    near = (one for one in situation.kubernetes.troubles if abs(one.at - job.ended_at) <= _SLACK)
    trouble = next((one for one in near if not one.keeps_from_starting), None)
    return explanation_of(trouble, Sureness.LIKELY) if trouble else None


def lost_head(situation: Situation) -> tuple[Trouble, Sureness] | None:
    """What happened to the head's pod about when it fell silent."""
    silent_at = situation.ending.ended_at
    heads = [one for one in situation.kubernetes.troubles if one.is_of_head and not one.keeps_from_starting]
    near = [one for one in heads if silent_at is not None and abs(one.at - silent_at) <= _SLACK]
    return (near[-1], Sureness.CERTAIN) if near else None


def explanation_of(trouble: Trouble, sureness: Sureness) -> Explanation:
    return Explanation(
        trouble.title,
        sureness,
        trouble.evidence,
        to_ns(trouble.at),
        subject=trouble.pod,
        rule=trouble.rule,
    )


def _is_pod_of(trouble: Trouble, pod: str, node_ip: str | None) -> bool:
    return trouble.pod == pod if pod else bool(node_ip) and trouble.pod_ip == node_ip
