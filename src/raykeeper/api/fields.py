"""Types of fields that several kinds share, with all that their schema must say."""

from __future__ import annotations

from typing import Annotated, Final

from raykeeper.api.labels import MANAGED_BY_KUBERAY, MANAGED_BY_MULTIKUEUE
from raykeeper.api.markers import Format, IntOrString, KubernetesType, Rule
from raykeeper.api.meta import JSON

Int32 = Annotated[int, Format("int32")]
Int64 = Annotated[int, Format("int64")]
Float32 = Annotated[float, Format("float")]
Time = Annotated[str, Format("date-time")]
"""RFC 3339, as it stands in JSON."""

MAX_INT32: Final = 2**31 - 1

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN: Final = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
"""The grammar of Kubernetes' quantities: a number, then a binary, decimal or exponential suffix."""
Quantity = Annotated[int | str, IntOrString(QUANTITY_PATTERN)]

ManagedBy = Annotated[
    str,
    Rule("self == oldSelf", "the managedBy field is immutable"),
    Rule(
        f"self in ['{MANAGED_BY_KUBERAY}', '{MANAGED_BY_MULTIKUEUE}']",
        f"the managedBy field value must be either '{MANAGED_BY_KUBERAY}' or '{MANAGED_BY_MULTIKUEUE}'",
    ),
]

# Kubernetes' own types stay plain JSON: a model of them would drop what is newer than itself.
PodTemplate = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.PodTemplateSpec")]
Service = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.Service")]
Resources = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.ResourceRequirements")]
SecurityContext = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.SecurityContext")]
EnvVar = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.EnvVar")]
EnvVarSource = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.EnvVarSource")]
EnvFromSource = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.EnvFromSource")]
VolumeMount = Annotated[JSON, KubernetesType("io.k8s.api.core.v1.VolumeMount")]
IngressTls = Annotated[JSON, KubernetesType("io.k8s.api.networking.v1.IngressTLS")]
NetworkPolicyIngressRule = Annotated[JSON, KubernetesType("io.k8s.api.networking.v1.NetworkPolicyIngressRule")]
NetworkPolicyEgressRule = Annotated[JSON, KubernetesType("io.k8s.api.networking.v1.NetworkPolicyEgressRule")]
