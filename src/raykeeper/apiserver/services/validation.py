"""What a request must have before anything is done, in KubeRay's order and words. Pure."""

from __future__ import annotations

from raykeeper.apiserver.errors import CallFailed, invalid_input
from raykeeper.apiserver.protos.cluster_pb2 import ClusterSpec, CreateClusterRequest, WorkerGroupSpec
from raykeeper.apiserver.protos.config_pb2 import CreateComputeTemplateRequest
from raykeeper.apiserver.protos.job_pb2 import CreateRayJobRequest
from raykeeper.apiserver.protos.serve_pb2 import CreateRayServiceRequest, RayService, UpdateRayServiceRequest

PULL_POLICIES = ("", "Always", "IfNotPresent")
NO_NAMESPACE = "Namespace is empty. Please specify a valid value."


def require(text: str, otherwise: str) -> None:
    """Raise `CallFailed` with this message for an empty text."""
    if not text:
        raise invalid_input(otherwise)


def require_same(namespace: str, inner: str, where: str) -> None:
    if namespace != inner:
        raise invalid_input(f"The namespace in the request is different from the namespace {where}.")


def check_template_request(request: CreateComputeTemplateRequest) -> None:
    template, step = request.compute_template, "Validate compute template runtime request failed."
    try:
        require(request.namespace, NO_NAMESPACE)
        require_same(request.namespace, template.namespace, "defined in the compute template")
        require(template.name, "Compute template name is empty. Please specify a valid value.")
        if not template.cpu and "cpu" not in template.limits and "cpu" not in template.requests:
            raise invalid_input("Cpu amount is zero. Please specify a valid value.")
        if not template.memory and "memory" not in template.limits and "memory" not in template.requests:
            raise invalid_input("Memory amount is zero. Please specify a valid value.")
    except CallFailed as failure:
        raise failure.wrapped(step) from None


def check_cluster_request(request: CreateClusterRequest) -> None:
    cluster, step = request.cluster, "Validate create cluster request failed."
    try:
        require(request.namespace, NO_NAMESPACE)
        require_same(request.namespace, cluster.namespace, "in the cluster definition")
        require(cluster.name, "Cluster name is empty. Please specify a valid value.")
        require(cluster.user, "User who create the cluster is empty. Please specify a valid value.")
        check_cluster_spec(cluster.cluster_spec if cluster.HasField("cluster_spec") else None)
    except CallFailed as failure:
        raise failure.wrapped(step) from None


def check_job_request(request: CreateRayJobRequest) -> None:
    job, step = request.job, "Validate job request failed."
    try:
        require(request.namespace, NO_NAMESPACE)
        require_same(request.namespace, job.namespace, "in the job definition")
        require(job.name, "Job name is empty. Please specify a valid value.")
        require(job.user, "User who create the job is empty. Please specify a valid value.")
        if not job.cluster_selector:
            check_cluster_spec(job.cluster_spec if job.HasField("cluster_spec") else None)
        elif job.HasField("cluster_spec"):
            # KubeRay takes such a spec without a look, and ends with the process where it has no head.
            check_cluster_spec(job.cluster_spec)
    except CallFailed as failure:
        raise failure.wrapped(step) from None


def check_service_request(request: CreateRayServiceRequest) -> None:
    try:
        require(request.namespace, NO_NAMESPACE)
        _check_service(request, "created")
    except CallFailed as failure:
        raise failure.wrapped("Validate create service request failed.") from None


def check_service_update(request: UpdateRayServiceRequest) -> None:
    try:
        require(request.name, "Name is empty. Please specify a valid value.")
        require(request.namespace, NO_NAMESPACE)
        _check_service(request, "updated")
    except CallFailed as failure:
        raise failure.wrapped("Validate update service request failed.") from None


def _check_service(request: CreateRayServiceRequest | UpdateRayServiceRequest, verb: str) -> None:
    if not request.HasField("service"):
        raise invalid_input("Service is empty, please input a valid payload.")
    service: RayService = request.service
    require_same(request.namespace, service.namespace, "in the service definition")
    require(service.name, "Service name is empty. Please specify a valid value.")
    require(service.user, f"User who {verb} the Service is empty. Please specify a valid value.")
    check_cluster_spec(service.cluster_spec if service.HasField("cluster_spec") else None)


def check_cluster_spec(spec: ClusterSpec | None) -> None:
    """What every cluster needs. Raises `CallFailed`."""
    if spec is None:
        raise invalid_input("A ClusterSpec object is required. Please specify one.")
    if not spec.HasField("head_group_spec"):
        raise invalid_input("Cluster Spec Object requires HeadGroupSpec to be populated. Please specify one.")
    head = spec.head_group_spec
    require(head.compute_template, "HeadGroupSpec compute template is empty. Please specify a valid value.")
    if not head.ray_start_params:
        raise invalid_input("HeadGroupSpec RayStartParams is empty. Please specify values.")
    if head.imagePullPolicy not in PULL_POLICIES:
        cure = "Please specify Always or IfNotPresent"
        raise invalid_input(f"HeadGroupSpec unsupported value for Image pull policy. {cure}")
    for place, group in enumerate(spec.worker_group_spec):
        _check_worker_group(place, group)


def _check_worker_group(place: int, group: WorkerGroupSpec) -> None:
    cure = "Please specify a valid value."
    require(group.group_name, f"WorkerNodeSpec {place} group name is empty. {cure}")
    require(group.compute_template, f"WorkerNodeSpec {place} compute template is empty. {cure}")
    if group.max_replicas == 0:
        raise invalid_input(f"WorkerNodeSpec {place} MaxReplicas can not be 0. {cure}")
    if group.min_replicas > group.max_replicas:
        raise invalid_input(f"WorkerNodeSpec {place} MinReplica > MaxReplicas. {cure}")
    if group.imagePullPolicy not in PULL_POLICIES:
        cure = "Please specify Always or IfNotPresent"
        raise invalid_input(f"Worker GroupSpec unsupported value for Image pull policy. {cure}")
