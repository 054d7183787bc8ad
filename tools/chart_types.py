"""The types behind chart values: Kubernetes' own and those of the RayCluster, as JSON Schema with references."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from raykeeper.api.crd.definition import definition_of
from raykeeper.api.crd.kinds import KINDS
from raykeeper.api.crd.kubernetes import REPLACED, KubernetesTypes, references
from raykeeper.api.meta import JSON

TEXT: Final[JSON] = {"type": ["string", "null"]}
NUMBER: Final[JSON] = {"type": ["number", "string", "null"]}

_CORE: Final = "io.k8s.api.core.v1."
_OBJECTS: Final[Mapping[str, str]] = {
    "affinity": "Affinity",
    "dnsConfig": "PodDNSConfig",
    "headService": "Service",
    "lifecycle": "Lifecycle",
    "livenessProbe": "Probe",
    "podSecurityContext": "PodSecurityContext",
    "readinessProbe": "Probe",
    "resources": "ResourceRequirements",
    "securityContext": "SecurityContext",
    "submitterPodTemplate": "PodTemplateSpec",
    "serveService": "Service",
    "template": "PodTemplateSpec",
}
_LISTS: Final[Mapping[str, str]] = {
    "configuration.defaultContainerEnvs": "EnvVar",
    "configuration.headSidecarContainers": "Container",
    "configuration.workerSidecarContainers": "Container",
    "containerEnv": "EnvVar",
    "env": "EnvVar",
    "envFrom": "EnvFromSource",
    "imagePullSecrets": "LocalObjectReference",
    "initContainers": "Container",
    "ports": "ContainerPort",
    "resourceClaims": "PodResourceClaim",
    "sidecarContainers": "Container",
    "tolerations": "Toleration",
    "topologySpreadConstraints": "TopologySpreadConstraint",
    "volumeMounts": "VolumeMount",
    "volumes": "Volume",
}
_FIELDS: Final[Mapping[str, str]] = {
    "authOptions": "RayCluster.authOptions",
    "autoscalerOptions": "RayCluster.autoscalerOptions",
    "historyServerOptions": "RayCluster.historyServerOptions",
    "ingressOptions": "RayCluster.headGroupSpec.ingressOptions",
    "networkPolicy": "RayCluster.networkPolicy",
    "redisPassword": "RayCluster.gcsFaultToleranceOptions.redisPassword",
    "redisUsername": "RayCluster.gcsFaultToleranceOptions.redisUsername",
    "scaleStrategy": "RayCluster.workerGroupSpecs.scaleStrategy",
    "storage": "RayCluster.gcsFaultToleranceOptions.storage",
    "tlsOptions": "RayCluster.tlsOptions",
    "upgradeStrategy": "RayCluster.upgradeStrategy",
    "deletionStrategy": "RayJob.deletionStrategy",
    "submitterConfig": "RayJob.submitterConfig",
}
"""Values that are fields of our own kinds, with the place they have in the spec."""
_WITH_A_CLUSTER: Final = ("ray-cluster", "ray-job", "ray-service")
_FIELDS_IN: Final[Mapping[str, Mapping[str, str]]] = {
    "ray-service": {"upgradeStrategy": "RayService.upgradeStrategy"},
}
"""The same for one chart, where it means another field."""


class ChartTypes:
    """The types that the values of one chart refer to, gathered while its schema is made."""

    def __init__(self, chart: str) -> None:
        self.chart = chart
        self._fields = {**_FIELDS, **_FIELDS_IN.get(chart, {})} if chart in _WITH_A_CLUSTER else {}
        self._kubernetes = KubernetesTypes.committed()
        self._used: dict[str, JSON] = {}

    def schema(self, value: str) -> JSON | None:
        """What may be given for this value, or None if it is of no known type."""
        if value in _OBJECTS:
            return self._reference(_CORE + _OBJECTS[value])
        if value in _LISTS:
            return {"type": ["array", "null"], "items": self._reference(_CORE + _LISTS[value])}
        if value in self._fields:
            return _nullable(_field(self._fields[value]), self)
        return None

    def definitions(self) -> dict[str, JSON]:
        """The types that were referred to, by their short names."""
        return dict(sorted(self._used.items()))

    def reference_or_type(self, name: str) -> JSON:
        """A type in the middle of a schema: small ones in place, others by reference."""
        return _nullable(REPLACED[name], self) if name in REPLACED else self._reference(name)

    def _reference(self, name: str) -> JSON:
        short = name.rpartition(".")[2]
        if short not in self._used:
            self._used[short] = {}  # first, for types that contain each other
            self._used[short] = _nullable(self._kubernetes.document(name), self)
        return {"$ref": f"#/definitions/{short}"}


def _field(place: str) -> JSON:
    kind, *path = place.split(".")
    schema = _specs()[kind]
    for name in path:
        schema = schema.get("items", schema)["properties"][name]
    return schema


@functools.cache
def _specs() -> Mapping[str, JSON]:
    """The schema of each kind's spec."""
    kubernetes = KubernetesTypes.committed()
    definitions = {kind.resource.kind: definition_of(kind, kubernetes) for kind in KINDS}
    return {
        kind: definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for kind, definition in definitions.items()
    }


def _nullable(schema: JSON, types: ChartTypes) -> JSON:
    """The schema as far as values are judged by it: by their kind, never their format; null is a value left out."""
    if reference := next(references({key: schema[key] for key in ("$ref", "allOf") if key in schema}), None):
        return types.reference_or_type(reference)
    if "anyOf" in schema or "oneOf" in schema:  # quantities, and numbers that may be names
        return dict(NUMBER)
    made: dict[str, Any] = {"type": [schema["type"], "null"]} if "type" in schema else {}
    if "properties" in schema:
        made["properties"] = {name: _nullable(part, types) for name, part in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            made[key] = _nullable(schema[key], types)
    return made
