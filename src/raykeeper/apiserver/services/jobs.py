"""Jobs: RayJobs."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from raykeeper.api.meta import JSON
from raykeeper.apiserver.errors import CallFailed, Untranslatable, untranslatable
from raykeeper.apiserver.protos import job_pb2 as pb
from raykeeper.apiserver.services.compute_templates import templates_of, unpopulated
from raykeeper.apiserver.services.objects import JOBS, create, delete, get_ours, list_ours, object_key
from raykeeper.apiserver.services.validation import check_job_request, require
from raykeeper.apiserver.translate.jobs import from_ray_job, to_ray_job
from raykeeper.kube.client import Kube

NO_NAME = "job name is empty. Please specify a valid value."
NO_NAMESPACE = "job namespace is empty. Please specify a valid value."


async def create_job(kube: Kube, request: pb.CreateRayJobRequest) -> pb.RayJob:
    check_job_request(request)
    try:
        return from_ray_job(await _created(kube, request.job))
    except CallFailed as failure:
        raise failure.wrapped("Create Job failed.") from failure


async def _created(kube: Kube, job: pb.RayJob) -> JSON:
    # KubeRay names the job by its id in these texts, which nobody gave yet.
    namespace, name = job.namespace, job.job_id
    try:
        has_spec = job.HasField("cluster_spec")
        templates = await templates_of(kube, job.cluster_spec, namespace) if has_spec else {}
    except CallFailed as failure:
        raise unpopulated(failure, namespace, name) from failure
    try:
        body = to_ray_job(job, templates)
    except Untranslatable as exc:
        raise untranslatable(exc, "Failed to create a Ray Job") from exc
    return await create(kube, JOBS, body, f"Failed to create a job for ({namespace}/{name})")


async def get_job(kube: Kube, request: pb.GetRayJobRequest) -> pb.RayJob:
    require(request.name, NO_NAME)
    require(request.namespace, NO_NAMESPACE)
    try:
        return from_ray_job(await get_ours(kube, JOBS, request.namespace, request.name))
    except CallFailed as failure:
        raise failure.wrapped("Get cluster failed.") from failure


async def list_jobs(kube: Kube, request: pb.ListRayJobsRequest) -> pb.ListRayJobsResponse:
    require(request.namespace, NO_NAMESPACE)
    jobs, token = await _listed(kube, request.namespace, request.limit, getattr(request, "continue"))
    return pb.ListRayJobsResponse(jobs=jobs, **{"continue": token})


async def list_all_jobs(kube: Kube, request: pb.ListAllRayJobsRequest) -> pb.ListAllRayJobsResponse:
    jobs, token = await _listed(kube, "", request.limit, getattr(request, "continue"))
    return pb.ListAllRayJobsResponse(jobs=jobs, **{"continue": token})


async def _listed(kube: Kube, namespace: str, limit: int, token: str) -> tuple[list[pb.RayJob], str]:
    try:
        listed = await list_ours(kube, JOBS, namespace, limit, token)
    except CallFailed as failure:
        step = f"List RayCluster failed in {namespace} with Limit {limit} and ContinueToken {token}"
        raise failure.wrapped(step).wrapped("List jobs failed.") from failure
    return [from_ray_job(found) for found in listed.items], listed.token


async def delete_job(kube: Kube, request: pb.DeleteRayJobRequest) -> Empty:
    require(request.name, NO_NAME)
    require(request.namespace, NO_NAMESPACE)
    try:
        await get_ours(kube, JOBS, request.namespace, request.name)
    except CallFailed as failure:
        raise failure.wrapped("Get job failure") from failure
    key = object_key(request.namespace, request.name)
    await delete(kube, JOBS, key, f"Failed to delete cluster {request.name}.")
    return Empty()
