"""What is there of a RayJob: every read is here, all from caches and from the last answers of Ray."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON, Object, ObjectKey, ObjectMeta
from raykeeper.api.raycluster import RayCluster, has_lost_head
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.api.structs import parse_part
from raykeeper.api.times import parse_time
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.raycluster.observe import GangObserver
from raykeeper.operator.raycluster.pod import parse_pod
from raykeeper.operator.raycluster.reading import read_cluster
from raykeeper.operator.raycluster.scheduling import scheduled_finding
from raykeeper.operator.rayhead.address import HeadAddress, dashboard_of
from raykeeper.operator.rayhead.poller import OwnerKey, Reading
from raykeeper.operator.rayhead.questions import job_question
from raykeeper.operator.rayjob.cluster import most_restarts
from raykeeper.operator.rayjob.facts import (
    ClusterFacts,
    Facts,
    JobInfo,
    NoSuchJob,
    RayAnswer,
    Silence,
    SubmitterFacts,
)
from raykeeper.operator.rayjob.states import INITIALIZING, RUNNING
from raykeeper.operator.rayjob.submitter.outcome import job_outcome, sidecar_outcome
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.features import gcs_backend
from raykeeper.operator.shared.head_pods import cluster_refusal, head_instance, head_pod, is_unready, pod_view
from raykeeper.operator.shared.pulls import ContainerKey, RefusedPulls
from raykeeper.operator.shared.random_names import random_end
from raykeeper.operator.shared.troubles import Trouble, pods_trouble
from raykeeper.ray import jobs
from raykeeper.ray.heads import Head


@dataclass(frozen=True)
class Observed:
    """What is known about one RayJob."""

    facts: Facts
    cluster: RayCluster | None
    cluster_item: Object | None
    submitter: Object | None
    head: Head | None
    """The client of the dashboard; None while its service is unknown."""
    scheduling: Mapping[ChildKey, JSON] = field(default_factory=dict)
    """What a batch scheduler has of the RayJob, such as its PodGroup."""


class Observer:
    """Reads caches, and has Ray asked about the jobs that run."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rayjobs = context.informers.cache(kinds.WATCHED_RAYJOBS)
        self._clusters = context.informers.cache(kinds.WATCHED_RAYCLUSTERS)
        self._services = context.informers.cache(kinds.WATCHED_HEAD_SERVICES)
        self._pods = context.informers.cache(kinds.WATCHED_PODS)
        self._jobs = context.informers.cache(kinds.WATCHED_JOBS)
        self._submitter_pods = context.informers.cache(kinds.WATCHED_SUBMITTER_PODS)
        self._gangs = GangObserver(context.informers, context.api_server)
        self._made: dict[ObjectKey, Object] = {}  # submitters that the cache has not shown yet
        self._refused = RefusedPulls()
        context.informers.of(kinds.WATCHED_JOBS).on_change(self._note_submitter)

    def remember(self, submitter: JSON) -> None:
        """A submitter was made just now: until the cache has shown it once, it is there all the same."""
        made = Object(metadata=msgspec.convert(submitter["metadata"], ObjectMeta))
        self._made[made.key] = made

    def _note_submitter(self, old: Object | None, new: Object | None) -> None:
        for shown in (old, new):
            if shown is not None:
                self._made.pop(shown.key, None)

    def observe(self, job: RayJob) -> Observed:
        """Everything at once; nothing is waited for."""
        now = self._context.clock.now()
        item = self._clusters.get(ObjectKey(job.metadata.namespace, job.status.ray_cluster_name))
        cluster = read_cluster(item)[0] if item is not None else None
        address = self._address(cluster) if cluster else None
        head = self._context.heads.of(cluster, address) if cluster and address else None
        submitter = self._submitter(job)
        pods = self._pods_of(cluster) if cluster else []
        submitter_pods = self._pods_of_submitter(job, submitter) if submitter else []
        refused = self._refused.note(job.key, [*pods, *submitter_pods], now)
        trouble = self._cluster_trouble(job, cluster, pods_trouble(pods, refused)) if cluster else None
        known = Facts(
            cluster=_cluster_facts(job, cluster, address, pods, trouble) if cluster else None,
            submitter=_submitter_facts(submitter, submitter_pods, refused) if submitter else None,
            settings=self._context.settings.rayjob,
            random_end=random_end(),
            namesake=self._namesake(job, cluster) if cluster else "",
        )
        facts = replace(known, ray=self._ask(job, head, known))
        return Observed(facts, cluster, item, submitter, head, self._gangs.of_owner(job.metadata.uid))

    def forget(self, key: ObjectKey) -> None:
        """Ask nobody about a RayJob any more."""
        self._made.pop(key, None)
        self._refused.forget(key)
        self._context.polls.forget(OwnerKey(RAY_JOBS.kind, key))

    def _ask(self, job: RayJob, head: Head | None, known: Facts) -> RayAnswer | None:
        """What Ray last said; from now on it is asked while the job runs."""
        owner = OwnerKey(RAY_JOBS.kind, job.key)
        if head is None or not job.status.job_id or job.status.job_deployment_status != RUNNING:
            self._context.polls.forget(owner)
            return Silence("its cluster has no head service with a port named dashboard") if head is None else None
        question = job_question(head, job.status.job_id, moment_of(job, known))
        self._context.polls.follow(owner, [question])
        return _answer(self._context.polls.reading(owner, question))

    def _address(self, cluster: RayCluster) -> HeadAddress | None:
        service = self._services.get(ObjectKey(cluster.metadata.namespace, names.head_service_name(cluster)))
        return dashboard_of(service, self._context.settings.pods.cluster_domain) if service else None

    def _pods_of(self, cluster: RayCluster) -> list[JSON]:
        found = self._pods.find(kinds.BY_CLUSTER, str(cluster.key))
        return [pod_view(pod) for pod in found if pod.controller_uid == cluster.metadata.uid]

    def _cluster_trouble(self, job: RayJob, cluster: RayCluster, of_pods: Trouble | None) -> Trouble | None:
        """Why the cluster is not ready. Pods of a gang that waits say less than their scheduler does."""
        if of_pods is not None and of_pods.is_hopeless:
            return of_pods
        refusal = cluster_refusal(cluster)
        is_starting = job.status.job_deployment_status == INITIALIZING
        gang = self._gang_trouble(cluster) if is_starting and refusal is None else None
        return gang or of_pods or refusal

    def _gang_trouble(self, cluster: RayCluster) -> Trouble | None:
        """What the batch scheduler lets the pods wait for."""
        wait = self._context.scheduler.waits(self._gangs.of_cluster(cluster))
        if wait is None:
            return None
        found = map(parse_pod, self._pods.find(kinds.BY_CLUSTER, str(cluster.key)))
        finding = scheduled_finding(cluster, [pod for pod in found if not pod.is_terminating], wait)
        return Trouble(finding.reason, finding.message) if finding.status == "False" else None

    def _pods_of_submitter(self, job: RayJob, submitter: Object) -> list[JSON]:
        found = self._submitter_pods.find(kinds.BY_ORIGIN, str(job.key))
        return [pod_view(pod) for pod in found if pod.controller_uid == submitter.metadata.uid]

    def _namesake(self, job: RayJob, cluster: RayCluster) -> str:
        """The oldest RayJob that has the same job on the same cluster, unless it is this one.

        Those that ended before the cluster was made are passed over: another cluster had its name then.
        """
        if not job.spec.cluster_selector or job.status.job_deployment_status != INITIALIZING:
            return ""
        key = kinds.ray_job_key(job.metadata.namespace, job.status.ray_cluster_name, job.status.job_id)
        since = parse_time(cluster.metadata.creation_timestamp)
        found = [one for one in self._rayjobs.find(kinds.BY_RAY_JOB, key) if not _ended_before(one, since)]
        oldest = min(found, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.uid), default=None)
        return oldest.metadata.name if oldest is not None and oldest.metadata.uid != job.metadata.uid else ""

    def _submitter(self, job: RayJob) -> Object | None:
        found = self._jobs.get(job.key) or self._made.get(job.key)
        return found if found is not None and found.controller_uid == job.metadata.uid else None


def moment_of(job: RayJob, known: Facts) -> str:
    """What has happened that Ray must be asked anew after: the job was given to Ray, its submitter ended or is gone."""
    sidecar = known.cluster.sidecar if known.cluster else None
    submitter = known.submitter or sidecar
    has_submitter = submitter is not None and not submitter.has_finished
    return f"{'given' if job.status.job_status else ''} {'submitter' if has_submitter else ''}"


def _cluster_facts(
    job: RayJob,
    cluster: RayCluster,
    address: HeadAddress | None,
    pods: list[JSON],
    trouble: Trouble | None,
) -> ClusterFacts:
    head = head_pod(pods, job.status.head_instance)
    owners = cluster.metadata.owner_references
    is_owned = any(owner.controller and owner.uid == job.metadata.uid for owner in owners)
    return ClusterFacts(
        name=cluster.metadata.name,
        uid=cluster.metadata.uid,
        is_owned=is_owned,
        is_going=cluster.metadata.deletion_timestamp is not None,
        going_since=parse_time(cluster.metadata.deletion_timestamp),
        spec=cluster.spec,
        status=cluster.status,
        dashboard_url=address.authority if address else "",
        head_instance=head_instance(head),
        has_lost_head=has_lost_head(cluster),
        is_head_ready=head is not None and not is_unready(head),
        sidecar=sidecar_outcome(head, most_restarts(job, cluster.spec)) if head else None,
        trouble=trouble,
        keeps_jobs=gcs_backend(cluster.spec, cluster.metadata.annotations) is not None,
        submission_mode=cluster.metadata.labels.get(labels.JOB_SUBMISSION_MODE, "") if is_owned else "",
    )


def _submitter_facts(submitter: Object, pods: list[JSON], refused: Collection[ContainerKey]) -> SubmitterFacts:
    status = {"status": msgspec.json.decode(submitter.status or b"{}")}
    return job_outcome(status, pods, pods_trouble(pods, refused))


class _End(msgspec.Struct, rename="camel"):
    end_time: str | None = None


def _ended_before(rayjob: Object, moment: datetime | None) -> bool:
    ended = parse_time(parse_part(rayjob.status, _End).end_time)
    return ended is not None and moment is not None and ended < moment


def _answer(reading: Reading[jobs.JobInfo | None]) -> RayAnswer | None:
    if reading.failure is not None:
        return Silence(reading.failure)
    if not reading.has_answer:
        return None
    info = reading.answer
    if info is None:
        return NoSuchJob()
    return JobInfo(info.status, info.message, _moment(info.start_time), _moment(info.end_time))


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
