"""What is deleted after a job's end, and when. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from raykeeper.api.rayjob import RayJob
from raykeeper.api.times import parse_time
from raykeeper.operator.rayjob.facts import (
    Action,
    ClusterFacts,
    DeleteCluster,
    DeleteSelf,
    Facts,
    Step,
    SuspendWorkers,
    Warned,
)
from raykeeper.operator.rayjob.states import FAILED, JOB_FAILED, SUCCEEDED

UNMATCHED: Final = "UnmatchedDeletionRules"
DESTRUCTIVENESS: Final = ("DeleteNone", "DeleteWorkers", "DeleteCluster", "DeleteSelf")


@dataclass(frozen=True)
class Cleanup:
    """One deletion that is due at some time."""

    policy: str
    due: datetime


def plan_cleanup(job: RayJob, facts: Facts, now: datetime) -> Step:
    """Do what is due, the most destructive of several; look again when the next is."""
    wanted = cleanups(job, facts)
    pending = [one for one in wanted if not _is_done(one.policy, facts.cluster)]
    due = sorted((one for one in pending if one.due <= now), key=lambda one: DESTRUCTIVENESS.index(one.policy))
    later = min((one.due for one in pending if one.due > now), default=None)
    actions = _actions(due[-1].policy, facts.cluster) if due else ()
    return Step(job.status, actions, later, warnings=() if wanted else _left_over(job, facts.cluster))


def cleanups(job: RayJob, facts: Facts) -> list[Cleanup]:
    """All that should be deleted at some time; nothing of a cluster that the job only used."""
    spec, ended = job.spec, parse_time(job.status.end_time)
    if spec.cluster_selector or ended is None:
        return []
    ttl = timedelta(seconds=max(spec.ttl_seconds_after_finished, 0))
    strategy = spec.deletion_strategy
    if strategy is not None and strategy.deletion_rules:
        return [
            Cleanup(rule.policy, ended + timedelta(seconds=rule.condition.ttl_seconds))
            for rule in strategy.deletion_rules
            if (rule.condition.job_status, rule.condition.job_deployment_status)
            in ((job.status.job_status, None), (None, job.status.job_deployment_status))
        ]
    if strategy is not None:
        by_status = {SUCCEEDED: strategy.on_success, JOB_FAILED: strategy.on_failure}
        policy = by_status.get(_legacy_status(job))
        return [Cleanup(policy.policy, ended + ttl)] if policy and policy.policy else []
    if spec.shutdown_after_job_finishes:
        return [Cleanup("DeleteSelf" if facts.settings.deletes_finished else "DeleteCluster", ended + ttl)]
    return []


def _legacy_status(job: RayJob) -> str:
    """A job that failed before Ray could say so has failed all the same."""
    return JOB_FAILED if job.status.job_deployment_status == FAILED else job.status.job_status


def _is_done(policy: str, cluster: ClusterFacts | None) -> bool:
    is_gone = cluster is None or cluster.is_going or not cluster.is_owned
    match policy:
        case "DeleteCluster":
            return is_gone
        case "DeleteWorkers":
            return is_gone or cluster is None or all(group.suspend for group in cluster.spec.worker_group_specs)
        case "DeleteSelf":
            return False
        case _:
            return True


def _actions(policy: str, cluster: ClusterFacts | None) -> tuple[Action, ...]:
    if policy == "DeleteSelf":
        return (DeleteSelf(),)
    if cluster is None or policy == "DeleteNone":
        return ()
    if policy == "DeleteCluster":
        return (DeleteCluster(cluster.name, cluster.uid),)
    return (SuspendWorkers(cluster.name),)


def _left_over(job: RayJob, cluster: ClusterFacts | None) -> tuple[Warned, ...]:
    """That the job ended in a way that its strategy says nothing about."""
    if cluster is None or not cluster.is_owned or job.spec.deletion_strategy is None:
        return ()
    end = job.status.job_status or job.status.job_deployment_status
    message = f"spec.deletionStrategy says nothing about {end}: RayCluster {cluster.name} stays"
    return (Warned(UNMATCHED, f"{message} until somebody deletes it"),)


def forgotten_ends(job: RayJob) -> list[Warned]:
    """Ends of the job that its deletion rules forget: its cluster would stay for ever."""
    strategy = job.spec.deletion_strategy
    if strategy is None or not strategy.deletion_rules or job.spec.cluster_selector:
        return []
    by_job = {rule.condition.job_status for rule in strategy.deletion_rules}
    by_deployment = {rule.condition.job_deployment_status for rule in strategy.deletion_rules}
    missing = []
    if SUCCEEDED not in by_job:
        missing.append("a job that succeeds")
    if JOB_FAILED not in by_job and FAILED not in by_deployment:
        missing.append("a job that fails")
    elif FAILED not in by_deployment:
        missing.append("a job that fails before Ray could say so")
    if not missing:
        return []
    return [
        Warned(
            UNMATCHED,
            f"spec.deletionStrategy.deletionRules has no rule for {' nor for '.join(missing)}: "
            "its RayCluster stays until somebody deletes it",
        )
    ]
