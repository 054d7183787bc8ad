"""RayJobs and what is known about them, for tests of decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.raycluster import RayClusterSpec, RayClusterStatus
from raykeeper.api.rayjob import RayJob, RayJobSpec, RayJobStatus
from raykeeper.operator.rayjob.facts import ClusterFacts, Facts, SubmitterFacts

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
TEMPLATE: JSON = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}
CLUSTER_SPEC: JSON = {
    "rayVersion": "2.60.0",
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "small", "replicas": 1, "template": TEMPLATE}],
}
HEAD = "head-uid/0"
_ATTEMPT: JSON = {
    "jobId": "counter-abcde",
    "rayClusterName": "counter-fghij",
    "startTime": "2026-11-16T11:50:00Z",
    "headInstance": HEAD,
}


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_job(state: str = "", status: JSON | None = None, annotations: JSON | None = None, **spec: Any) -> RayJob:
    """A RayJob in a state; fields of spec and status as in JSON."""
    body = {"entrypoint": "python job.py", "rayClusterSpec": CLUSTER_SPEC, **spec}
    known = {"jobDeploymentStatus": state, **(_ATTEMPT if state not in ("", "Suspended") else {}), **(status or {})}
    return RayJob(
        ObjectMeta(name="counter", namespace="ns", uid="job-uid", generation=3, annotations=annotations or {}),
        msgspec.convert(body, RayJobSpec),
        msgspec.convert(known, RayJobStatus),
    )


def a_cluster(state: str = "ready", **facts: Any) -> ClusterFacts:
    found = ClusterFacts(
        name="counter-fghij",
        uid="cluster-uid",
        is_owned=True,
        is_going=False,
        spec=msgspec.convert(CLUSTER_SPEC, RayClusterSpec),
        status=RayClusterStatus(state=state),
        dashboard_url="counter-fghij-head-svc.ns.svc.cluster.local:8265",
        head_instance=HEAD,
    )
    return replace(found, **facts)


RUNNING_SUBMITTER = SubmitterFacts()
DONE_SUBMITTER = SubmitterFacts(has_finished=True, finished_at=NOW - timedelta(seconds=5))
FAILED_SUBMITTER = SubmitterFacts(has_finished=True, has_failed=True, finished_at=NOW, message="exit code 1")


def facts(**given: Any) -> Facts:
    usual: dict[str, Any] = {"cluster": a_cluster(), "random_end": "zzzzz"}
    return Facts(**(usual | given))
