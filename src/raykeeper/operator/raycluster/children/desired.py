"""All children that a cluster should have besides its pods, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.errors import InvalidSpec
from raykeeper.operator.raycluster.children import auth_secret, history_account, ingress, rbac, route, storage
from raykeeper.operator.schedulers.pod_groups import pod_group_drift
from raykeeper.operator.shared import features, services
from raykeeper.operator.shared.children.drift import Drift
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.service_drift import service_drift
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import serve_ports


@dataclass(frozen=True)
class ChildSettings:
    """What the operator's settings and the API server decide about children."""

    headless_head_service: bool = True
    """Whether a head service of type ClusterIP has no address of its own."""
    uses_routes: bool = False
    """Whether a Route of OpenShift stands in for the Ingress."""
    history: History = field(default_factory=History)
    """What clusters get that ask for history by an annotation."""


@dataclass(frozen=True)
class Children:
    """What should be, and what was asked for and cannot be."""

    desired: tuple[JSON, ...]
    problems: tuple[InvalidSpec, ...] = ()

    @property
    def keys(self) -> frozenset[ChildKey]:
        return frozenset(child_key(child) for child in self.desired)


def desired_children(
    cluster: RayCluster, settings: ChildSettings, random_bytes: bytes, pull_secrets: Sequence[JSON] = ()
) -> Children:
    """Every child but the pods. The random bytes become the cluster's token, where the Secret has to be made.

    `pull_secrets`: of the accounts that pods would have without one for their history, where that has to be made.
    """
    before = [*_rbac(cluster), *history_account.history_children(cluster, settings.history, pull_secrets)]
    before += [*_door(cluster, settings), *_secret(cluster, random_bytes)]
    before.append(services.desired_head_service(cluster, headless=settings.headless_head_service))
    if features.needs_headless_worker_service(cluster.spec):
        before.append(services.desired_headless_worker_service(cluster))
    serve, problems = _serve_service(cluster)
    return Children((*before, *serve, *_claim(cluster)), problems)


def _rbac(cluster: RayCluster) -> Iterator[JSON]:
    if not features.is_autoscaled(cluster.spec):
        return
    if rbac.users_service_account(cluster) is None:
        yield rbac.desired_service_account(cluster)
    yield rbac.desired_role(cluster)
    yield rbac.desired_role_binding(cluster)


def _door(cluster: RayCluster, settings: ChildSettings) -> Iterator[JSON]:
    if cluster.spec.head_group_spec.enable_ingress:
        yield route.desired_route(cluster) if settings.uses_routes else ingress.desired_ingress(cluster)


def _secret(cluster: RayCluster, random_bytes: bytes) -> Iterator[JSON]:
    if features.needs_auth_secret(cluster.spec):
        yield auth_secret.desired_auth_secret(cluster, random_bytes)


def _serve_service(cluster: RayCluster) -> tuple[list[JSON], tuple[InvalidSpec, ...]]:
    """Without a port for Ray Serve there is no service, which keeps nothing else from being made."""
    if not features.needs_serve_service(cluster.metadata.annotations):
        return [], ()
    if serve_ports(cluster):
        return [services.desired_serve_service(cluster)], ()
    sentence = (
        f"metadata.annotations[{labels.ENABLE_SERVE_SERVICE}] asks for a service in front of Ray Serve: "
        "name a port of the head's Ray container serve"
    )
    return [], (InvalidSpec("FailedToCreateService", sentence),)


def _claim(cluster: RayCluster) -> Iterator[JSON]:
    backend = features.gcs_backend(cluster.spec, cluster.metadata.annotations)
    if backend == "rocksdb" and storage.users_claim(cluster) is None:
        yield storage.desired_claim(cluster)


_DRIFTS: Final[dict[str, Callable[[JSON, JSON], Drift]]] = {
    "ServiceAccount": history_account.account_drift,
    "Role": rbac.role_drift,
    "RoleBinding": rbac.role_binding_drift,
    "Ingress": ingress.ingress_drift,
    "Route": route.route_drift,
    "Secret": auth_secret.auth_secret_drift,
    "Service": service_drift,
    "PodGroup": pod_group_drift,
    "Workload": pod_group_drift,
}


NEEDED_BY_PODS: Final = frozenset({"Secret", "ServiceAccount", "PersistentVolumeClaim", "Workload", "PodGroup"})
"""Kinds without which no pod starts, or not together with the others."""


def is_needed_by_pods(cluster: RayCluster, key: ChildKey) -> bool:
    """Whether pods would be made in vain while this child is missing: they find the head by its service."""
    return key.kind in NEEDED_BY_PODS or key == ChildKey("Service", names.head_service_name(cluster))


def child_drift(owner: Owner, desired: JSON, actual: JSON) -> Drift:
    """What to do about a child that is there, whatever its kind. Assumes that it is the cluster's, or a claim."""
    if desired["kind"] == "PersistentVolumeClaim":
        return storage.claim_drift(owner, desired, actual)
    rule = _DRIFTS.get(desired["kind"])
    return rule(desired, actual) if rule else None


def child_problems(owner: Owner, children: Children, actual: Mapping[ChildKey, JSON]) -> list[InvalidSpec]:
    """What is asked for about children and cannot be had; nothing else waits for it."""
    claims = [child for child in children.desired if child["kind"] == "PersistentVolumeClaim"]
    found = [(claim, actual[child_key(claim)]) for claim in claims if child_key(claim) in actual]
    sentences = [sentence for claim, there in found for sentence in storage.claim_differences(owner, claim, there)]
    return [*children.problems, *(InvalidSpec("FailedToCreatePVC", sentence) for sentence in sentences)]
