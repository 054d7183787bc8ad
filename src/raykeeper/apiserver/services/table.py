"""Every call of the API, by the name that the protobuf files give it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from raykeeper.apiserver.protos import cluster_pb2, config_pb2, job_pb2, job_submission_pb2, serve_pb2
from raykeeper.apiserver.services import compute_templates as templates
from raykeeper.apiserver.services import jobs
from raykeeper.apiserver.services.clusters import Clusters
from raykeeper.apiserver.services.heads import Heads
from raykeeper.apiserver.services.job_submissions import JobSubmissions
from raykeeper.apiserver.services.ray_services import RayServices
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube

Function = Callable[[Kube, Any], Awaitable[Message]]
"""Does a call in the rights that come with the client. Raises `CallFailed`."""

SERVED = (
    cluster_pb2.DESCRIPTOR.services_by_name["ClusterService"],
    config_pb2.DESCRIPTOR.services_by_name["ComputeTemplateService"],
    job_pb2.DESCRIPTOR.services_by_name["RayJobService"],
    serve_pb2.DESCRIPTOR.services_by_name["RayServeService"],
    job_submission_pb2.DESCRIPTOR.services_by_name["RayJobSubmissionService"],
)
"""Image templates are declared and not served, as in KubeRay."""


@dataclass(frozen=True)
class Call:
    """One call: how it is described, and what does it."""

    method: MethodDescriptor
    function: Function

    @property
    def service(self) -> str:
        name: str = self.method.containing_service.full_name
        return name

    @property
    def name(self) -> str:
        name: str = self.method.name
        return name


def calls(clock: Clock, heads: Heads) -> list[Call]:
    """All calls. A method of a served service without a function, or the other way round, is a bug."""
    functions = _functions(clock, heads)
    found = [Call(method, functions.pop(method.full_name)) for service in SERVED for method in service.methods]
    if functions:
        raise LookupError(f"no such methods: {', '.join(functions)}")
    return found


def _functions(clock: Clock, heads: Heads) -> dict[str, Function]:
    clusters, services, submissions = Clusters(clock), RayServices(clock), JobSubmissions(heads)
    return {
        "proto.ClusterService.CreateCluster": clusters.create,
        "proto.ClusterService.GetCluster": clusters.get,
        "proto.ClusterService.ListCluster": clusters.list,
        "proto.ClusterService.ListAllClusters": clusters.list_all,
        "proto.ClusterService.DeleteCluster": clusters.delete,
        "proto.ComputeTemplateService.CreateComputeTemplate": templates.create_template,
        "proto.ComputeTemplateService.GetComputeTemplate": templates.get_template,
        "proto.ComputeTemplateService.ListComputeTemplates": templates.list_templates,
        "proto.ComputeTemplateService.ListAllComputeTemplates": templates.list_all_templates,
        "proto.ComputeTemplateService.DeleteComputeTemplate": templates.delete_template,
        "proto.RayJobService.CreateRayJob": jobs.create_job,
        "proto.RayJobService.GetRayJob": jobs.get_job,
        "proto.RayJobService.ListRayJobs": jobs.list_jobs,
        "proto.RayJobService.ListAllRayJobs": jobs.list_all_jobs,
        "proto.RayJobService.DeleteRayJob": jobs.delete_job,
        "proto.RayServeService.CreateRayService": services.create,
        "proto.RayServeService.UpdateRayService": services.update,
        "proto.RayServeService.GetRayService": services.get,
        "proto.RayServeService.ListRayServices": services.list,
        "proto.RayServeService.ListAllRayServices": services.list_all,
        "proto.RayServeService.DeleteRayService": services.delete,
        "proto.RayJobSubmissionService.SubmitRayJob": submissions.submit,
        "proto.RayJobSubmissionService.GetJobDetails": submissions.details,
        "proto.RayJobSubmissionService.GetJobLog": submissions.log,
        "proto.RayJobSubmissionService.ListJobDetails": submissions.list,
        "proto.RayJobSubmissionService.StopRayJob": submissions.stop,
        "proto.RayJobSubmissionService.DeleteRayJob": submissions.delete,
    }
