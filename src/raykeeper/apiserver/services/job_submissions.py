"""Jobs that are given to the head of a cluster directly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.protobuf.empty_pb2 import Empty

from raykeeper.apiserver.errors import CallFailed, Code, Untranslatable, plain
from raykeeper.apiserver.protos import job_submission_pb2 as pb
from raykeeper.apiserver.services.clusters import find_cluster
from raykeeper.apiserver.services.heads import Heads
from raykeeper.apiserver.services.objects import REFUSALS
from raykeeper.apiserver.translate.submissions import from_details, to_submission
from raykeeper.kube.client import Kube
from raykeeper.ray.errors import HeadRefused, OversizedAnswer, RayRefused, SubmissionIdTaken
from raykeeper.ray.heads import Head
from raykeeper.ray.jobs import (
    delete_job,
    job_details,
    job_info,
    list_jobs,
    stop_job,
    submit_new_job,
    whole_log,
)


class JobSubmissions:
    """The calls about jobs of one cluster's head."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads

    async def submit(self, kube: Kube, request: pb.SubmitRayJobRequest) -> pb.SubmitRayJobReply:
        async with self._head(kube, request.namespace, request.clustername) as head:
            submission = to_submission(request.jobsubmission)
            try:
                return pb.SubmitRayJobReply(submission_id=await submit_new_job(head, submission))
            except SubmissionIdTaken as exc:
                text = f"submission ID '{exc.submission_id}' already used, Please use a different submission_id"
                raise CallFailed(Code.Unknown, text) from exc

    async def details(self, kube: Kube, request: pb.GetJobDetailsRequest) -> pb.JobSubmissionInfo:
        async with self._head(kube, request.namespace, request.clustername) as head:
            details = await job_details(head, request.submissionid)
            if details is None:
                raise _unknown(request.submissionid)
            return from_details(details)

    async def log(self, kube: Kube, request: pb.GetJobLogRequest) -> pb.GetJobLogReply:
        async with self._head(kube, request.namespace, request.clustername) as head:
            text = await whole_log(head, request.submissionid)
            if text is None:
                raise CallFailed(Code.Unknown, f'JobSubmission.RayJob "{request.submissionid}" not found')
            return pb.GetJobLogReply(log=text)

    async def list(self, kube: Kube, request: pb.ListJobDetailsRequest) -> pb.ListJobSubmissionInfo:
        async with self._head(kube, request.namespace, request.clustername) as head:
            return pb.ListJobSubmissionInfo(submissions=[from_details(job) for job in await list_jobs(head)])

    async def stop(self, kube: Kube, request: pb.StopRayJobSubmissionRequest) -> Empty:
        async with self._head(kube, request.namespace, request.clustername) as head:
            if await job_details(head, request.submissionid) is None:
                raise _unknown(request.submissionid)
            await stop_job(head, request.submissionid)
            return Empty()

    async def delete(self, kube: Kube, request: pb.DeleteRayJobSubmissionRequest) -> Empty:
        async with self._head(kube, request.namespace, request.clustername) as head:
            info = await job_info(head, request.submissionid)
            if info is not None and not info.has_ended:
                # Ray refuses, and KubeRay says that it was done.
                text = f"Job {request.submissionid} is {info.status}: stop it before it is deleted"
                raise CallFailed(Code.FailedPrecondition, text)
            await delete_job(head, request.submissionid)
            return Empty()

    @asynccontextmanager
    async def _head(self, kube: Kube, namespace: str, name: str) -> AsyncIterator[Head]:
        """The head of a cluster that is ready; what goes wrong there is told as a failed call."""
        cluster = await find_cluster(kube, namespace, name)
        if str((cluster.get("status") or {}).get("state", "")).lower() != "ready":
            raise CallFailed(Code.Unknown, "cluster is not ready")
        try:
            yield await self._heads.of(kube, cluster)
        except (*REFUSALS, Untranslatable, RayRefused, HeadRefused, OversizedAnswer) as exc:
            raise plain(exc) from exc


def _unknown(submission_id: str) -> CallFailed:
    return CallFailed(Code.Unknown, f"Job {submission_id} does not exist on the cluster")
