"""Manifests of the four kinds as plain dictionaries, checked against our own types before anything is sent."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from raykeeper.api.meta import JSON
from raykeeper.client.kinds import RAY_KINDS, definition
from raykeeper.errors import RaykeeperError

RAY_VERSION = "2.52.0"
"""Of the default image."""
IMAGE = f"rayproject/ray:{RAY_VERSION}"

_HEAD_PORTS = (("gcs-server", 6379), ("dashboard", 8265), ("client", 10001), ("serve", 8000))
_PROBLEMS_SHOWN = 20


class InvalidManifest(RaykeeperError):
    """A manifest is not what the kind's types say; `problems` has each place and what is wrong there."""

    exit_code = 2

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        more = len(problems) - _PROBLEMS_SHOWN
        listed = "; ".join(problems[:_PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        super().__init__(f"{subject}: {listed}")
        self.problems = tuple(problems)


@dataclass(frozen=True)
class PodShape:
    """What a Ray pod is made of. Everything that is not named here goes into `pod` and `container`."""

    cpu: int | str = 1
    memory: str = "2Gi"
    gpu: int = 0
    image: str = ""
    """Default: that of the whole cluster."""
    env: Mapping[str, str] = field(default_factory=dict)
    ray_start_params: Mapping[str, str] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the Ray container, such as `volumeMounts`."""
    pod: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the pod's spec, such as `tolerations`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def template(self, name: str, image: str, ports: Sequence[tuple[str, int]] = ()) -> JSON:
        amounts: JSON = {"cpu": str(self.cpu), "memory": self.memory}
        if self.gpu:
            amounts["nvidia.com/gpu"] = str(self.gpu)
        container: JSON = {
            "name": name,
            "image": self.image or image,
            "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        }
        if ports:
            container["ports"] = [{"name": port, "containerPort": number} for port, number in ports]
        if self.env:
            container["env"] = [{"name": variable, "value": value} for variable, value in self.env.items()]
        template: JSON = {"spec": {**self.pod, "containers": [{**container, **self.container}]}}
        metadata = {"labels": dict(self.labels), "annotations": dict(self.annotations)}
        if any(metadata.values()):
            template["metadata"] = {key: value for key, value in metadata.items() if value}
        return template


@dataclass(frozen=True)
class Head(PodShape):
    """The head of a cluster."""


@dataclass(frozen=True)
class WorkerGroup(PodShape):
    """Workers that are alike."""

    name: str = "workers"
    replicas: int = 1
    min_replicas: int | None = None
    """Default: 0 with autoscaling, else `replicas`."""
    max_replicas: int | None = None
    """Default: `replicas`."""
    hosts: int = 1
    """Pods of one replica: more than one for TPU slices."""

    def manifest(self, image: str, *, autoscaling: bool) -> JSON:
        least = (0 if autoscaling else self.replicas) if self.min_replicas is None else self.min_replicas
        most = max(self.replicas, least) if self.max_replicas is None else self.max_replicas
        group: JSON = {
            "groupName": self.name,
            "replicas": self.replicas,
            "minReplicas": least,
            "maxReplicas": most,
            "rayStartParams": dict(self.ray_start_params),
            "template": self.template("ray-worker", image),
        }
        return {**group, "numOfHosts": self.hosts} if self.hosts != 1 else group


def cluster_spec(
    *,
    image: str = IMAGE,
    ray_version: str = "",
    head: Head | None = None,
    workers: Sequence[WorkerGroup] = (),
    autoscaling: bool = False,
    **spec: Any,
) -> JSON:
    """The spec of a RayCluster, which RayJobs and RayServices hold as well; `spec` has more fields, by their JSON
    names."""
    head = head or Head()
    params = {"dashboard-host": "0.0.0.0", **head.ray_start_params}  # noqa: S104 - inside of its pod
    body: JSON = {
        "rayVersion": ray_version or version_of_image(image),
        "headGroupSpec": {"rayStartParams": params, "template": head.template("ray-head", image, _HEAD_PORTS)},
        "workerGroupSpecs": [group.manifest(image, autoscaling=autoscaling) for group in workers],
    }
    if autoscaling:
        body["enableInTreeAutoscaling"] = True
    return {**body, **spec}


def version_of_image(image: str) -> str:
    """`2.52.0` of `rayproject/ray:2.52.0-py311`; empty where the tag says none."""
    name, _, tag = image.rpartition(":")
    version = tag.partition("@")[0].partition("-")[0]
    return version if name and version[:1].isdigit() and version.count(".") == 2 else ""


def ray_cluster(
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    history: bool = False,
    **cluster: Any,
) -> JSON:
    """A RayCluster; `cluster` is what `cluster_spec` takes. Raises InvalidManifest."""
    return _object("RayCluster", name, namespace, labels, annotations, cluster_spec(**cluster), history=history)


def ray_job(
    name: str,
    entrypoint: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    history: bool = False,
    cluster: JSON | None = None,
    on_cluster: str = "",
    runtime_env: str = "",
    shutdown_after: bool = True,
    ttl_seconds: int = 0,
    retries: int = 0,
    **spec: Any,
) -> JSON:
    """A RayJob with a cluster of its own (`cluster`, by `cluster_spec`), or on one that is there (`on_cluster`).

    `runtime_env` is YAML. Raises InvalidManifest.
    """
    body: JSON = {"entrypoint": entrypoint, **spec}
    if on_cluster:
        body["clusterSelector"] = {"ray.io/cluster": on_cluster}
    else:
        body["rayClusterSpec"] = cluster or cluster_spec()
        body["shutdownAfterJobFinishes"] = shutdown_after
        if ttl_seconds:
            body["ttlSecondsAfterFinished"] = ttl_seconds
    if runtime_env:
        body["runtimeEnvYAML"] = runtime_env
    if retries:
        body["backoffLimit"] = retries
    return _object("RayJob", name, namespace, labels, annotations, body, history=history)


def ray_service(
    name: str,
    serve_config: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    history: bool = False,
    cluster: JSON | None = None,
    **spec: Any,
) -> JSON:
    """A RayService of a Serve config in YAML. Raises InvalidManifest."""
    body: JSON = {"serveConfigV2": serve_config, "rayClusterConfig": cluster or cluster_spec(), **spec}
    return _object("RayService", name, namespace, labels, annotations, body, history=history)


def ray_cron_job(
    name: str,
    schedule: str,
    job: JSON,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JSON:
    """A RayCronJob that makes a RayJob such as `job` (by `ray_job`) at its times. Raises InvalidManifest."""
    body: JSON = {"schedule": schedule, "jobTemplate": job["spec"], **spec}
    return _object("RayCronJob", name, namespace, labels, annotations, body)


def _object(
    kind: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    spec: JSON,
    *,
    history: bool = False,
) -> JSON:
    notes = {**({"raykeeper.io/history": "true"} if history else {}), **(annotations or {})}
    metadata: JSON = {"name": name}
    for field_name, value in (("namespace", namespace), ("labels", dict(labels or {})), ("annotations", notes)):
        if value:
            metadata[field_name] = value
    manifest = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    check_manifest(manifest)
    return manifest


def check_manifest(manifest: JSON) -> None:
    """Raise InvalidManifest with every place where a manifest is not what its kind's schema says, misspelt fields
    included, which Kubernetes would drop without a word."""
    kind = str(manifest.get("kind", ""))
    schema = _schema(kind)
    if schema is None:
        known = ", ".join(resource.kind for resource in RAY_KINDS)
        raise InvalidManifest("manifest", [f"kind: {kind!r} is none of {known}"])
    metadata = manifest.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    problems = list(_problems(manifest, schema, ""))
    if not names.get("name") and not names.get("generateName"):
        problems.append("metadata.name: it is missing")
    if manifest.get("apiVersion") != "ray.io/v1":
        problems.append(f"apiVersion: {manifest.get('apiVersion')!r} is not 'ray.io/v1'")
    if problems:
        raise InvalidManifest(f"{kind} {names.get('name', '')}".strip(), problems)


@lru_cache
def _schema(kind: str) -> JSON | None:
    found = definition(kind)
    if found is None:
        return None
    # Imported here: most scripts that only look at things never need Kubernetes' types.
    from raykeeper.api.crd.kubernetes import KubernetesTypes
    from raykeeper.api.crd.schema import SchemaGenerator

    schema = SchemaGenerator(KubernetesTypes.committed()).object_schema(found.struct)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    text = {"type": "string"}
    properties = {**schema["properties"], "metadata": anything, "apiVersion": text, "kind": text, "status": anything}
    return {**schema, "properties": properties}


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _problems(value: Any, schema: JSON, path: str) -> Iterator[str]:
    """Each place that is wrong, depth first."""
    if value is None or schema.get("x-kubernetes-int-or-string"):
        yield from _wrong_number_or_text(value, schema, path)
        return
    expected = str(schema.get("type", ""))
    kinds = _TYPES.get(expected, (object,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and expected in ("integer", "number")):
        yield f"{path or 'manifest'}: {value!r} is not {_article(expected)}"
        return
    if isinstance(value, dict):
        yield from _wrong_members(value, schema, path)
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{path}[{place}]")
    else:
        yield from _out_of_bounds(value, schema, path)


def _wrong_number_or_text(value: Any, schema: JSON, path: str) -> Iterator[str]:
    if value is None:
        if not schema.get("nullable", True):
            yield f"{path}: it must not be null"
    elif isinstance(value, bool) or not isinstance(value, (int, str, float)):
        yield f"{path}: {value!r} is neither a number nor a text"


def _wrong_members(value: JSON, schema: JSON, path: str) -> Iterator[str]:
    properties: JSON = schema.get("properties", {})
    others = schema.get("additionalProperties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or not (properties or others)
    for name in schema.get("required", ()):
        if name not in value and "default" not in properties.get(name, {}):
            yield f"{_join(path, name)}: it is missing"
    for name, part in value.items():
        where = _join(path, str(name))
        if name in properties:
            yield from _problems(part, properties[name], where)
        elif isinstance(others, dict):
            yield from _problems(part, others, where)
        elif not is_open and others is not True:
            close = difflib.get_close_matches(str(name), properties, 1)
            yield f"{where}: there is no such field" + (f", maybe {close[0]!r}?" if close else "")


def _out_of_bounds(value: Any, schema: JSON, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {', '.join(map(str, schema['enum']))}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value} is less than {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{path}: {value} is more than {schema['maximum']}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{path}: it must not be empty"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
