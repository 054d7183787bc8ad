"""Pod templates of heads and workers: from a group and its compute template, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.cluster_pb2 import (
    Capabilities,
    EnvironmentVariables,
    HeadGroupSpec,
    SecurityContext,
    WorkerGroupSpec,
)
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate, PodToleration
from raykeeper.apiserver.translate.metadata import COMPUTE_IMAGE, COMPUTE_TEMPLATE
from raykeeper.apiserver.translate.structs import to_plain, to_struct
from raykeeper.apiserver.translate.templates import to_resources, to_tolerations
from raykeeper.apiserver.translate.variables import from_env, resource_field, to_env
from raykeeper.apiserver.translate.volumes import from_pod, to_mounts, to_volumes

Group = HeadGroupSpec | WorkerGroupSpec
G = TypeVar("G", HeadGroupSpec, WorkerGroupSpec)

HEAD_CONTAINER: Final = "ray-head"
WORKER_CONTAINER: Final = "ray-worker"
DEFAULT_REPOSITORY: Final = "rayproject/ray"
_SHORTEST_NAME: Final = 2
"""KubeRay ignores names of service accounts and pull secrets that are shorter."""

_HEAD_PORTS: Final = (("redis", 6379), ("head", 10001), ("dashboard", 8265), ("metrics", 8080))
_SERVE_PORTS: Final = (("dashboard-agent", 52365), ("serve", 8000))

_OPERATOR_ENV: Final = frozenset({"RAY_CLUSTER_NAME", "RAY_PORT", "RAY_ADDRESS", "RAY_USAGE_STATS_KUBERAY_IN_USE"})
_HEAD_ENV: Final = frozenset({"MY_POD_IP", *_OPERATOR_ENV})
_WORKER_ENV: Final = frozenset(
    {
        *("RAY_DISABLE_DOCKER_CPU_WARNING", "TYPE", "CPU_REQUEST", "CPU_LIMITS", "MEMORY_REQUESTS", "MEMORY_LIMITS"),
        *("MY_POD_NAME", "MY_POD_IP", "FQ_RAY_IP", "RAY_IP", "REDIS_PASSWORD"),
        *_OPERATOR_ENV,
    }
)
_RESERVED_ANNOTATIONS: Final = frozenset(
    {
        *(COMPUTE_IMAGE, COMPUTE_TEMPLATE, "ray.io/health-state", "ray.io/ft-enabled", "openshift.io/scc"),
        *("cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs", "cni.projectcalico.org/containerID"),
        *("k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status"),
    }
)
_RESERVED_LABELS: Final = frozenset(
    {
        *("app.kubernetes.io/created-by", "app.kubernetes.io/name", "ray.io/cluster", "ray.io/cluster-dashboard"),
        *("ray.io/group", "ray.io/identifier", "ray.io/is-ray-node", "ray.io/node-type"),
    }
)


@dataclass(frozen=True)
class PodInputs:
    """What a pod template is made from beside its group."""

    version: str
    """Of Ray: the tag of the default image."""
    variables: EnvironmentVariables
    """Of every Ray container of the cluster."""
    template: ComputeTemplate


def to_head_template(group: HeadGroupSpec, inputs: PodInputs, *, serves: bool) -> JSON:
    """The pod template of a head; `serves` opens the ports of Ray Serve."""
    ports = [*_HEAD_PORTS, *(_SERVE_PORTS if serves else ())]
    own: JSON = {
        "name": HEAD_CONTAINER,
        "env": [_pod_field("MY_POD_IP", "status.podIP")],
        "ports": [{"name": name, "containerPort": number} for name, number in ports],
    }
    return _pod_template(group, inputs, own)


def to_worker_template(group: WorkerGroupSpec, inputs: PodInputs) -> JSON:
    """The pod template of a worker."""
    amounts = {"CPU_REQUEST": "requests.cpu", "CPU_LIMITS": "limits.cpu"}
    amounts |= {"MEMORY_REQUESTS": "requests.memory", "MEMORY_LIMITS": "limits.memory"}
    own: JSON = {
        "name": WORKER_CONTAINER,
        "env": [
            {"name": "RAY_DISABLE_DOCKER_CPU_WARNING", "value": "1"},
            {"name": "TYPE", "value": "worker"},
            *(_own_amount(name, resource) for name, resource in amounts.items()),
            _pod_field("MY_POD_NAME", "metadata.name"),
            _pod_field("MY_POD_IP", "status.podIP"),
        ],
        "ports": [{"containerPort": 80}],
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
    }
    return _pod_template(group, inputs, own)


def _pod_field(name: str, path: str) -> JSON:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _own_amount(name: str, resource: str) -> JSON:
    return {"name": name, "valueFrom": resource_field(WORKER_CONTAINER, resource)}


def _pod_template(group: Group, inputs: PodInputs, own: JSON) -> JSON:
    metadata: JSON = {"annotations": {**_inputs_as_annotations(group, inputs), **dict(group.annotations)}}
    if group.labels:
        metadata["labels"] = dict(group.labels)
    container: JSON = {
        **own,
        "env": [*own["env"], *to_env(inputs.variables), *to_env(group.environment)],
        "image": group.image or f"{DEFAULT_REPOSITORY}:{inputs.version}",
        "imagePullPolicy": "Always" if group.imagePullPolicy.lower() == "always" else "IfNotPresent",
        "resources": to_resources(inputs.template),
        **_security(group),
    }
    if mounts := to_mounts(group.volumes):
        container["volumeMounts"] = mounts
    return {"metadata": metadata, "spec": {"containers": [container], **_pod_fields(group, inputs.template)}}


def _inputs_as_annotations(group: Group, inputs: PodInputs) -> dict[str, str]:
    """What the pod was made from, since neither can be told from the pod itself."""
    return {COMPUTE_TEMPLATE: inputs.template.name, COMPUTE_IMAGE: group.image}


def _security(group: Group) -> JSON:
    if not group.HasField("security_context"):
        return {}
    given = group.security_context
    capabilities: JSON = {}
    if given.capabilities.add:
        capabilities["add"] = list(given.capabilities.add)
    if given.capabilities.drop:
        capabilities["drop"] = list(given.capabilities.drop)
    context: JSON = {"capabilities": capabilities}
    if given.HasField("privileged"):
        context["privileged"] = given.privileged
    return {"securityContext": context}


def _pod_fields(group: Group, template: ComputeTemplate) -> JSON:
    """Everything about the pod but its container."""
    fields: JSON = {}
    if volumes := to_volumes(group.volumes):
        fields["volumes"] = volumes
    if tolerations := _tolerations(group, template):
        fields["tolerations"] = tolerations
    if selector := {**dict(template.node_selector), **dict(group.node_selector)}:
        fields["nodeSelector"] = selector
    for holder in (group, template):
        if holder.HasField("affinity"):
            fields["affinity"] = to_plain(holder.affinity)
            break
    if len(group.service_account) >= _SHORTEST_NAME:
        fields["serviceAccountName"] = group.service_account
    if len(group.image_pull_secret) >= _SHORTEST_NAME:
        fields["imagePullSecrets"] = [{"name": group.image_pull_secret}]
    return fields


def _tolerations(group: Group, template: ComputeTemplate) -> list[JSON]:
    """Those of the template, then those of the group that are not among them."""
    result = to_tolerations(template.tolerations)
    for toleration in group.tolerations:
        names = ("key", "operator", "value", "effect")
        given = {name: getattr(toleration, name) for name in names if getattr(toleration, name)}
        if given not in result:
            result.append(given)
    return result


def read_head(pod: JSON, group: HeadGroupSpec) -> None:
    """Fill the head's fields from its pod template."""
    _read_pod(pod, group, HEAD_CONTAINER, _HEAD_ENV)


def read_worker(pod: JSON, group: WorkerGroupSpec) -> None:
    """Fill a group's fields from its pod template."""
    _read_pod(pod, group, WORKER_CONTAINER, _WORKER_ENV)


def _read_pod(pod: JSON, group: G, container_name: str, reserved: frozenset[str]) -> None:
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations, containers = metadata.get("annotations") or {}, spec.get("containers") or [{}]
    group.image = annotations.get(COMPUTE_IMAGE, "")
    group.compute_template = annotations.get(COMPUTE_TEMPLATE, "")
    group.annotations.update(_without(annotations, _RESERVED_ANNOTATIONS))
    group.labels.update(_without(metadata.get("labels") or {}, _RESERVED_LABELS))
    group.volumes.extend(from_pod(spec))
    container: JSON = next((item for item in containers if item.get("name") == container_name), {})
    if env := container.get("env"):
        group.environment.CopyFrom(from_env(env, reserved))
    if (context := container.get("securityContext")) is not None:
        group.security_context.CopyFrom(_security_context(context))
    if len(account := spec.get("serviceAccountName", "")) >= _SHORTEST_NAME:
        group.service_account = account
    if secrets := spec.get("imagePullSecrets"):
        group.image_pull_secret = secrets[0].get("name", "")
    if containers[0].get("imagePullPolicy") == "Always":
        group.imagePullPolicy = "Always"
    _read_placement(spec, group)


def _read_placement(spec: JSON, group: G) -> None:
    """What decides on which nodes a pod may run, from wherever it came."""
    group.node_selector.update(spec.get("nodeSelector") or {})
    group.tolerations.extend(_read_tolerations(spec.get("tolerations") or ()))
    if affinity := spec.get("affinity"):
        group.affinity.CopyFrom(to_struct(affinity))


def _read_tolerations(tolerations: Iterable[JSON]) -> list[PodToleration]:
    names = ("key", "operator", "value", "effect")
    return [PodToleration(**{name: item.get(name, "") for name in names}) for item in tolerations]


def _without(values: Mapping[str, str], reserved: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in reserved}


def _security_context(context: JSON) -> SecurityContext:
    found = context.get("capabilities") or {}
    capabilities = Capabilities(add=found.get("add") or (), drop=found.get("drop") or ())
    return SecurityContext(capabilities=capabilities, privileged=context.get("privileged"))
