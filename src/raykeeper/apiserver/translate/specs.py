"""Cluster specs: what clusters, jobs and services have in common."""

from __future__ import annotations

from collections.abc import Mapping

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.cluster_pb2 import (
    AutoscalerOptions,
    ClusterSpec,
    EnvironmentVariables,
    HeadGroupSpec,
    WorkerGroupSpec,
)
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate
from raykeeper.apiserver.translate.pods import PodInputs, read_head, read_worker, to_head_template, to_worker_template
from raykeeper.apiserver.translate.quantities import canonical, check_amount
from raykeeper.apiserver.translate.structs import merged, to_plain
from raykeeper.apiserver.translate.variables import from_env_from, to_env_from
from raykeeper.apiserver.translate.volumes import from_mounts, to_mounts

Templates = Mapping[str, ComputeTemplate]
"""Compute templates by name."""


def template_names(spec: ClusterSpec) -> list[str]:
    """The compute templates that a spec needs, the head's first, each once."""
    names = [spec.head_group_spec.compute_template, *(group.compute_template for group in spec.worker_group_spec)]
    return list(dict.fromkeys(names))


def to_cluster_spec(
    spec: ClusterSpec,
    version: str,
    templates: Templates,
    variables: EnvironmentVariables | None = None,
    *,
    serves: bool = False,
) -> JSON:
    """The spec of a RayCluster. Raises `Untranslatable`."""
    shared = variables or EnvironmentVariables()
    head = PodInputs(version, shared, templates[spec.head_group_spec.compute_template])
    workers = [
        to_worker_group(group, PodInputs(version, shared, templates[group.compute_template]))
        for group in spec.worker_group_spec
    ]
    result: JSON = {"headGroupSpec": to_head_group(spec.head_group_spec, head, serves=serves)}
    if version:
        result["rayVersion"] = version
    if workers:
        result["workerGroupSpecs"] = workers
    if spec.headServiceAnnotations:
        result["headServiceAnnotations"] = dict(spec.headServiceAnnotations)
    if spec.enableInTreeAutoscaling:
        result["enableInTreeAutoscaling"] = True
        if spec.HasField("autoscalerOptions"):
            result["autoscalerOptions"] = to_autoscaler(spec.autoscalerOptions)
    if spec.HasField("suspend"):
        result["suspend"] = spec.suspend
    return merged(result, to_plain(spec.spec))


def to_head_group(group: HeadGroupSpec, inputs: PodInputs, *, serves: bool) -> JSON:
    result: JSON = {
        "rayStartParams": dict(group.ray_start_params),
        "template": to_head_template(group, inputs, serves=serves),
    }
    if group.service_type:
        result["serviceType"] = group.service_type
    if group.enableIngress:
        result["enableIngress"] = True
    return merged(result, to_plain(group.spec))


def to_worker_group(group: WorkerGroupSpec, inputs: PodInputs) -> JSON:
    result: JSON = {
        "groupName": group.group_name,
        "scaleStrategy": {},  # as Go writes it; see `resource_field`
        "replicas": group.replicas,
        "minReplicas": group.min_replicas or group.replicas,
        "maxReplicas": group.max_replicas or group.replicas,
        **({"rayStartParams": dict(group.ray_start_params)} if group.ray_start_params else {}),
        "template": to_worker_template(group, inputs),
    }
    if group.num_of_hosts:
        result["numOfHosts"] = group.num_of_hosts
    if group.idle_timeout_seconds:
        result["idleTimeoutSeconds"] = group.idle_timeout_seconds
    if group.HasField("suspend"):
        result["suspend"] = group.suspend
    return merged(result, to_plain(group.spec))


def to_autoscaler(options: AutoscalerOptions) -> JSON:
    result: JSON = {}
    if options.idleTimeoutSeconds > 0:
        result["idleTimeoutSeconds"] = options.idleTimeoutSeconds
    if options.upscalingMode:
        result["upscalingMode"] = options.upscalingMode
    if options.image:
        result["image"] = options.image
    if options.imagePullPolicy.lower() == "always":  # the only one that KubeRay passes on
        result["imagePullPolicy"] = "Always"
    if options.envs.values:
        result["env"] = [{"name": name, "value": value} for name, value in sorted(options.envs.values.items())]
    if sources := to_env_from(options.envs):
        result["envFrom"] = sources
    if options.volumes:
        result["volumeMounts"] = to_mounts(options.volumes)
    if options.cpu or options.memory:
        amounts = {"cpu": options.cpu or "500m", "memory": options.memory or "512Mi"}
        for name, amount in amounts.items():
            check_amount(amount, f"{name} for autoscaler is not specified correctly", is_told_why=False)
        result["resources"] = {"limits": amounts, "requests": dict(amounts)}
    return result


def from_cluster_spec(spec: JSON) -> ClusterSpec:
    """What a RayCluster's spec says in the fields of the API."""
    result = ClusterSpec(head_group_spec=from_head_group(spec.get("headGroupSpec") or {}))
    result.worker_group_spec.extend(from_worker_group(group) for group in spec.get("workerGroupSpecs") or ())
    if spec.get("enableInTreeAutoscaling"):
        result.enableInTreeAutoscaling = True
        if (options := spec.get("autoscalerOptions")) is not None:
            result.autoscalerOptions.CopyFrom(from_autoscaler(options))
    result.headServiceAnnotations.update(spec.get("headServiceAnnotations") or {})
    if spec.get("suspend") is not None:
        result.suspend = spec["suspend"]
    return result


def from_head_group(spec: JSON) -> HeadGroupSpec:
    group = HeadGroupSpec(ray_start_params=spec.get("rayStartParams"), service_type=spec.get("serviceType"))
    if spec.get("enableIngress"):
        group.enableIngress = True
    read_head(spec.get("template") or {}, group)
    return group


def from_worker_group(spec: JSON) -> WorkerGroupSpec:
    group = WorkerGroupSpec(
        group_name=spec.get("groupName"),
        replicas=spec.get("replicas"),
        min_replicas=spec.get("minReplicas"),
        max_replicas=spec.get("maxReplicas"),
        ray_start_params=spec.get("rayStartParams"),
        suspend=spec.get("suspend"),
        idle_timeout_seconds=spec.get("idleTimeoutSeconds"),
    )
    if (hosts := spec.get("numOfHosts", 1)) != 1:
        group.num_of_hosts = hosts
    read_worker(spec.get("template") or {}, group)
    return group


def from_autoscaler(options: JSON) -> AutoscalerOptions:
    result = AutoscalerOptions(
        idleTimeoutSeconds=options.get("idleTimeoutSeconds"),
        upscalingMode=options.get("upscalingMode"),
        image=options.get("image"),
        imagePullPolicy=options.get("imagePullPolicy"),
    )
    env, sources = options.get("env") or (), options.get("envFrom") or ()
    if env or sources:
        result.envs.values.update({item.get("name", ""): item.get("value", "") for item in env})
        from_env_from(sources, result.envs)
    result.volumes.extend(from_mounts(options.get("volumeMounts") or ()))
    if (resources := options.get("resources")) is not None:
        amounts = resources.get("limits") or resources.get("requests") or {}
        result.cpu = canonical(amounts.get("cpu", "0"))
        result.memory = canonical(amounts.get("memory", "0"))
    return result
