"""Failures that follow from what Kubernetes did to a pod: looked for in place and time before Ray's own guesses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Confidence, Evidence, JobOutcome, Who, WhoKind
from raykeeper.history.report.pod_failures import PodFailure
from raykeeper.history.report.rules.infrastructure import OF_NODE_LOSS
from raykeeper.times import from_ns, to_ns

_SLACK = timedelta(minutes=2)
"""Between what Kubernetes and what Ray noticed: the head gives a silent node up after a minute at most."""
_SUPERVISOR_DIED = "JOB_SUPERVISOR_ACTOR"
CRASHED = "crashed_cluster"
_LOST = "the cluster's head was lost"


def troubled_pod(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The pod of the node that the tasks were on ended about when they failed."""
    if failed.error_type not in OF_NODE_LOSS:
        return None
    first = failed.first
    failure = pod_failure_near(report_input, first.node_id or "", first.node_ip, from_ns(failed.first_ns))
    return explanation_of(failure, Confidence.CONFIRMED) if failure else None


def pod_failure_near(
    report_input: ReportInput, node_id: str, node_ip: str | None, at: datetime | None
) -> PodFailure | None:
    """What Kubernetes did about then to the pod of that node."""
    pod = report_input.kubernetes.pods_by_node.get(node_id, "")
    own = (one for one in report_input.kubernetes.failures if _is_pod_of(one, pod, node_ip))
    return next(
        (one for one in own if at is not None and abs(one.at - at) <= _SLACK and not one.keeps_from_starting), None
    )


def missing_workers(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """Tasks waited for nodes whose pods never came up."""
    if not failed.never_ran or failed.never_ran < failed.failures:
        return None
    kept = [one for one in report_input.kubernetes.failures if one.keeps_from_starting and not one.is_of_head]
    return explanation_of(kept[0], Confidence.LIKELY) if kept else None


def job_with_lost_pod(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The process that watched the driver ended with the pod it ran in."""
    if job.status != "FAILED" or not (job.error_type or "").startswith(_SUPERVISOR_DIED) or job.ended_at is None:
        return None
    near = (one for one in report_input.kubernetes.failures if abs(one.at - job.ended_at) <= _SLACK)
    failure = next((one for one in near if not one.keeps_from_starting), None)
    return explanation_of(failure, Confidence.LIKELY) if failure else None


def job_of_lost_head(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The job was at work when its head crashed. The next head looks for the job's supervisor, and finds none."""
    if job.status != "FAILED" or job.exit_code is not None or job.started_at is None or job.ended_at is None:
        return None
    lost_at = next((at for at in report_input.lost_heads if job.started_at <= at <= job.ended_at), None)
    if lost_at is None:
        return None
    facts = (
        Evidence("session", "the head crashed while the job ran, and the next head did not find it", lost_at),
        Evidence("job", job.message or job.status, job.ended_at),
    )
    return lost_head(report_input, lost_at, facts)


def lost_head(report_input: ReportInput, at: datetime, facts: tuple[Evidence, ...]) -> Explanation:
    """A head was lost at that time: of its own, or by what happened to its pod about then."""
    heads = [one for one in report_input.kubernetes.failures if one.is_of_head and not one.keeps_from_starting]
    near = [one for one in heads if abs(one.at - at) <= _SLACK]
    if not near:
        return Explanation(
            _LOST,
            Confidence.LIKELY,
            facts,
            to_ns(at),
            subject=at.isoformat(),
            rule=CRASHED,
            who=Who(WhoKind.CLUSTER, ""),
            basis="it ended without a word, and nobody says why",
        )
    told = explanation_of(min(near, key=lambda one: abs(one.at - at)), Confidence.CONFIRMED)
    return replace(told, title=f"{_LOST}: {told.title}", evidence=(*told.evidence, *facts))


def explanation_of(failure: PodFailure, confidence: Confidence) -> Explanation:
    return Explanation(
        failure.title,
        confidence,
        failure.evidence,
        to_ns(failure.at),
        subject=failure.pod,
        rule=failure.rule,
        who=Who(WhoKind.POD, failure.pod),
        basis="Kubernetes says so",
    )


def _is_pod_of(failure: PodFailure, pod: str, node_ip: str | None) -> bool:
    return failure.pod == pod if pod else bool(node_ip) and failure.pod_ip == node_ip
