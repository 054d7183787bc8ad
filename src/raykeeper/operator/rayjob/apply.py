"""Carries out what was decided about a RayJob. Every write but that of the status is here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster, RayClusterSpec
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import NotFound
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.http.requests import Propagation
from raykeeper.kube.resources import JOBS
from raykeeper.logs import Log
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.gates import Gate
from raykeeper.operator.rayjob import facts
from raykeeper.operator.rayjob.cluster import desired_cluster
from raykeeper.operator.rayjob.facts import Action
from raykeeper.operator.rayjob.gang import as_begun, job_gang, plan_job_gang
from raykeeper.operator.rayjob.observe import Observed
from raykeeper.operator.rayjob.states import SubmissionMode
from raykeeper.operator.rayjob.submitter.command import submission
from raykeeper.operator.rayjob.submitter.container import SubmitterDefaults
from raykeeper.operator.rayjob.submitter.job import desired_submitter
from raykeeper.operator.schedulers.interface import SUBMITTER_GROUP, THE_CLUSTER
from raykeeper.operator.schedulers.pod_groups import pod_group_drift
from raykeeper.operator.shared.children.apply import ChildWriter
from raykeeper.operator.shared.children.drift import Drift
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.children.plan import ChildAction, CreateChild, DeleteChild, PatchChild, plan_children
from raykeeper.operator.shared.children.service_drift import service_drift
from raykeeper.operator.shared.finalizers import add_finalizer
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.services import ServiceIdentity, desired_head_service
from raykeeper.ray.errors import HeadRefused
from raykeeper.ray.jobs import JobSubmission, stop_job, submit_job

SPOKEN: Final = {"Job": "RayJobSubmitter"}
"""Kinds that KubeRay's events call by another name."""
log = Log("raykeeper.operator.rayjob")


class NotDone(RaykeeperError):
    """An action was refused; the state that was to follow it is not reached."""


class SubmissionRefused(RaykeeperError):
    """Ray does not want the job, however often it is sent."""


def rayjob_drift(_owner: Owner, desired: JSON, actual: JSON) -> Drift:
    """The head service and the PodGroup are kept as they should be; clusters and submitters are made once."""
    rule = {"Service": service_drift, "PodGroup": pod_group_drift}.get(desired["kind"])
    return rule(desired, actual) if rule else None


class Actor:
    """Does what a step says."""

    def __init__(self, context: Context, recorder: EventRecorder, remember: Callable[[JSON], None]) -> None:
        """`remember` is told of each submitter that was made."""
        self._context = context
        self._remember = remember
        self._recorder = recorder
        self._scheduler = context.scheduler
        self._children = ChildWriter(context.kube, recorder, rayjob_drift, SPOKEN, context.scheduler.kinds)
        self._services = context.informers.cache(kinds.WATCHED_ORIGINATED_SERVICES)
        self._history = History(context.settings.history)
        self._defaults = SubmitterDefaults(
            context.settings.pods.uses_login_shell,
            context.settings.rayjob.submitter_image,
            restarts_sidecars=context.settings.gates.is_on(Gate.SIDECAR_SUBMITTER_RESTART),
        )

    async def apply(self, job: RayJob, spec: JSON, observed: Observed, actions: Sequence[Action]) -> None:
        """One after the other. Raises `NotDone` or `SubmissionRefused` at the first that cannot be."""
        for action in actions:
            await self._apply(job, spec, observed, action)

    async def _apply(self, job: RayJob, spec: JSON, observed: Observed, action: Action) -> None:
        match action:
            case facts.AddFinalizer():
                await add_finalizer(self._context.kube, RAY_JOBS, job.metadata, labels.RAYJOB_FINALIZER)
            case facts.SubmitJob():
                await self._submit(job, observed)
            case facts.StopJob(job_id):
                await self.stop(observed, job_id)
            case facts.DeleteSubmitter(waits_for_pods):
                await self._delete_submitter(job, observed, waits_for_pods=waits_for_pods)
            case facts.DeleteSelf():
                with contextlib.suppress(NotFound):
                    await self._context.kube.delete(RAY_JOBS, job.key, uid=job.metadata.uid)
            case _:
                await self._write(job, self._child_actions(job, spec, observed, action))

    def _child_actions(self, job: RayJob, spec: JSON, observed: Observed, action: Action) -> list[ChildAction]:
        match action:
            case facts.CreateCluster():
                return [CreateChild(self._cluster(job, spec["rayClusterSpec"]))]
            case facts.CreateSubmitter() if observed.cluster is not None and observed.facts.cluster is not None:
                url = observed.facts.cluster.dashboard_url
                known = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, dashboard_url=url))
                return [CreateChild(self._submitter(known, observed.cluster, observed.facts.cluster))]
            case facts.KeepHeadService():
                return self._head_service(job, observed)
            case facts.DeleteCluster(name, uid, waits_for_pods):
                return [DeleteChild(ChildKey("RayCluster", name), uid, waits_for_pods)]
            case facts.SuspendWorkers(name) if observed.cluster_item is not None:
                groups = msgspec.json.decode(observed.cluster_item.spec).get("workerGroupSpecs") or []
                suspended = [group | {"suspend": True} for group in groups]
                version = observed.cluster_item.metadata.resource_version
                patch = {"metadata": {"resourceVersion": version}, "spec": {"workerGroupSpecs": suspended}}
                return [PatchChild(ChildKey("RayCluster", name), patch)]
            case _:
                return []

    def _counted(self, job: RayJob) -> RayJob:
        """The job as schedulers see it, with all that its pods will ask for."""
        if job.spec.ray_cluster_spec is None:
            return job
        spec = self._counted_spec(job, job.spec.ray_cluster_spec)
        return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, ray_cluster_spec=spec))

    def _counted_spec(self, job: RayJob, spec: RayClusterSpec) -> RayClusterSpec:
        return self._history.with_collector(spec, job.metadata.annotations)

    def _cluster(self, job: RayJob, cluster_spec: JSON) -> JSON:
        cluster = desired_cluster(job, cluster_spec, self._defaults)
        if job.spec.submission_mode != SubmissionMode.K8S_JOB:
            return cluster  # all its pods are the cluster's own
        return self._scheduler.dress(job_gang(self._counted(job), self._defaults), cluster, THE_CLUSTER)

    def _submitter(self, job: RayJob, cluster: RayCluster, known: facts.ClusterFacts) -> JSON:
        submitter = desired_submitter(job, cluster, self._defaults)
        gang, template = job_gang(self._counted(as_begun(job, known)), self._defaults), submitter["spec"]["template"]
        dressed = self._scheduler.dress(gang, template, SUBMITTER_GROUP)
        return {**submitter, "spec": {**submitter["spec"], "template": dressed}}

    async def keep_gang(self, job: RayJob, observed: Observed, state: str) -> None:
        """Let the batch scheduler know of the pods that are to be, before there are any. Raises `NotDone`."""
        known, found = observed.facts.cluster, observed.scheduling
        cluster = replace(known, spec=self._counted_spec(job, known.spec)) if known else None
        counted = self._counted(job)
        await self._write(job, plan_job_gang(counted, state, cluster, self._scheduler, found, self._defaults))

    async def _write(self, job: RayJob, actions: Sequence[ChildAction]) -> None:
        ledger = await self._children.apply(Owner.of(job), actions)
        if submitter := ledger.made.get(ChildKey(JOBS.kind, job.metadata.name)):
            self._remember(submitter)
        if ledger.refusals:
            raise NotDone(str(ledger.refusals[0])) from ledger.refusals[0]

    def _head_service(self, job: RayJob, observed: Observed) -> list[ChildAction]:
        """The service that always leads to the head of the present attempt; none for another's cluster."""
        if observed.cluster is None or job.spec.cluster_selector:
            return []
        owner, name = Owner.of(job), f"{job.metadata.name}-head-svc"
        service_labels = {
            labels.ORIGINATED_FROM_CR_NAME: job.metadata.name,
            labels.ORIGINATED_FROM_CRD: RAY_JOBS.kind,
            labels.NODE_TYPE: labels.HEAD,
            labels.IDENTIFIER: names.clip_label(f"{job.metadata.name}-head"),
        }
        headless = not self._context.settings.raycluster.head_service_has_ip
        desired = desired_head_service(
            observed.cluster, ServiceIdentity(owner, name, service_labels), headless=headless
        )
        found = self._services.get(job.key._replace(name=name))
        actual: dict[ChildKey, JSON] = {}
        if found is not None and found.controller_uid == job.metadata.uid:
            meta = {
                "labels": found.metadata.labels,
                "annotations": found.metadata.annotations,
                "uid": found.metadata.uid,
            }
            actual[ChildKey("Service", name)] = {"metadata": meta, "spec": msgspec.json.decode(found.spec or b"{}")}
        return plan_children(owner, [desired], actual, rayjob_drift, is_in_use=True)

    async def _submit(self, job: RayJob, observed: Observed) -> None:
        if observed.head is None:
            return
        try:
            await submit_job(observed.head, msgspec.convert(submission(job), JobSubmission))
        except HeadRefused as error:
            raise SubmissionRefused(str(error)) from error
        except Unavailable as error:
            raise NotDone(str(error)) from error
        log.info("job submitted", rayjob=job.key, job=job.status.job_id)

    async def stop(self, observed: Observed, job_id: str) -> None:
        """Ask Ray to stop a job; nothing depends on the answer."""
        if observed.head is None:
            return
        try:
            await stop_job(observed.head, job_id)
        except RaykeeperError as error:
            log.warning("cannot stop a job", job=job_id, error=str(error))

    async def _delete_submitter(self, job: RayJob, observed: Observed, *, waits_for_pods: bool) -> None:
        if observed.submitter is None or observed.submitter.metadata.deletion_timestamp is not None:
            return
        # Unless it is said, Kubernetes leaves the pods of a Job behind.
        with contextlib.suppress(NotFound):
            uid = observed.submitter.metadata.uid
            propagation: Propagation = "Foreground" if waits_for_pods else "Background"
            await self._context.kube.delete(JOBS, job.key, uid=uid, propagation=propagation)
            note = f"Deleted Job {job.metadata.name}"
            self._recorder.normal(Owner.of(job).ref(), "DeletedRayJobSubmitter", note, action="Delete")
