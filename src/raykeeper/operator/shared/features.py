"""Which features a RayCluster's spec asks for, where more than one field has a say in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from raykeeper.api import labels
from raykeeper.api.podtemplates import env_value, ray_container
from raykeeper.api.raycluster import RayClusterSpec

AUTOSCALER_V2_ENV: Final = "RAY_enable_autoscaler_v2"
TRUE_IN_ENV: Final = frozenset({"1", "true"})
"""What Ray takes for yes in an environment variable."""

GcsBackend = Literal["redis", "rocksdb"]


def is_autoscaled(spec: RayClusterSpec) -> bool:
    """Whether Ray's autoscaler decides about the number of workers."""
    return spec.enable_in_tree_autoscaling is True


def chosen_autoscaler(spec: RayClusterSpec) -> Literal["v1", "v2"] | None:
    """The version of the autoscaler named in the spec; None leaves it to Ray."""
    return spec.autoscaler_options.version if spec.autoscaler_options else None


def is_autoscaler_v2_in_env(spec: RayClusterSpec) -> bool:
    """Whether the head's environment turns the autoscaler v2 on, as was done before the spec had a field for it."""
    return env_value(ray_container(spec.head_group_spec.template), AUTOSCALER_V2_ENV) in TRUE_IN_ENV


def is_autoscaler_v2(spec: RayClusterSpec) -> bool:
    """Whether the autoscaler v2 is asked for, either way."""
    return chosen_autoscaler(spec) == "v2" or is_autoscaler_v2_in_env(spec)


def gcs_backend(spec: RayClusterSpec, annotations: Mapping[str, str]) -> GcsBackend | None:
    """Where the GCS keeps its state; None without fault tolerance. The annotation is the older way to ask for Redis."""
    options = spec.gcs_fault_tolerance_options
    if options:
        return options.backend or "redis"
    return "redis" if annotations.get(labels.FT_ENABLED, "").lower() == "true" else None


def is_token_auth(spec: RayClusterSpec) -> bool:
    """Whether Ray lets only callers with a token in."""
    return spec.auth_options is not None and spec.auth_options.mode == "token"


def is_kubernetes_token_auth(spec: RayClusterSpec) -> bool:
    """Whether Ray asks Kubernetes about each caller's own token."""
    return spec.auth_options is not None and spec.auth_options.enable_k8s_token_auth is True


def needs_auth_secret(spec: RayClusterSpec) -> bool:
    """Whether the operator makes the Secret with the cluster's token.

    As in KubeRay also where the mode is unset, although Ray then asks nobody for a token (docs/compatibility.md, B1).
    """
    options = spec.auth_options
    if options is None or options.mode == "disabled":
        return False
    return not is_kubernetes_token_auth(spec) and not options.secret_name


def needs_headless_worker_service(spec: RayClusterSpec) -> bool:
    """Whether some group's replicas span hosts, whose pods must find each other by name."""
    return any(group.num_of_hosts > 1 for group in spec.worker_group_specs)


def needs_serve_service(annotations: Mapping[str, str]) -> bool:
    """Whether a RayCluster that no RayService made asks for a service in front of Ray Serve."""
    return annotations.get(labels.ENABLE_SERVE_SERVICE) == "true"
