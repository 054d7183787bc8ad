"""What the operator may do: the rules of its ClusterRole, as data, and the objects that give them to somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from bed.rest import Json

RBAC: Final = "rbac.authorization.k8s.io"
RAY_KINDS: Final = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
FOLLOW: Final = ("list", "watch")
MAKE: Final = (*FOLLOW, "get", "create", "patch")
KEEP: Final = (*MAKE, "delete")


class Right(NamedTuple):
    """One verb on one kind."""

    group: str
    kind: str
    verb: str


class Rule(NamedTuple):
    """Verbs on kinds of one API group."""

    group: str
    kinds: tuple[str, ...]
    verbs: tuple[str, ...]

    def to_json(self) -> Json:
        return {"apiGroups": [self.group], "resources": list(self.kinds), "verbs": list(self.verbs)}


RULES: Final[tuple[Rule, ...]] = (
    Rule("ray.io", ("rayclusters",), KEEP),
    Rule("ray.io", ("rayjobs",), KEEP),
    # Patched once, to take KubeRay's finalizer off.
    Rule("ray.io", ("rayservices",), (*FOLLOW, "patch")),
    Rule("ray.io", ("raycronjobs",), FOLLOW),
    Rule("ray.io", tuple(f"{kind}/status" for kind in RAY_KINDS), ("patch",)),
    # OpenShift, and whoever runs the same admission plugin, asks for this before an object may hold up its owner's end.
    Rule("ray.io", tuple(f"{kind}/finalizers" for kind in RAY_KINDS), ("update",)),
    Rule("", ("pods",), (*KEEP, "deletecollection")),
    # Kubernetes lets nobody give what he does not have, and the operator gives this to Ray's autoscaler.
    Rule("", ("pods/resize",), ("patch",)),
    Rule("", ("services",), KEEP),
    # Changed only where a setting changes the annotations of those for history; KubeRay's own role does not allow it.
    Rule("", ("serviceaccounts",), (*FOLLOW, "get", "create", "patch", "delete")),
    # They hold what cannot be made again, so they are never deleted; Kubernetes collects them after their cluster.
    Rule("", ("secrets",), (*FOLLOW, "get", "create", "update")),
    Rule("", ("persistentvolumeclaims",), MAKE),
    Rule("networking.k8s.io", ("ingresses",), KEEP),
    Rule(RBAC, ("roles",), (*FOLLOW, "get", "create", "update", "delete")),
    Rule(RBAC, ("rolebindings",), (*FOLLOW, "get", "create", "delete")),
    Rule("batch", ("jobs",), (*FOLLOW, "get", "create", "delete")),
    Rule("discovery.k8s.io", ("endpointslices",), FOLLOW),
    Rule("events.k8s.io", ("events",), ("create", "patch")),
    Rule("coordination.k8s.io", ("leases",), ("list", "get", "create", "update")),
)
WITH_GATEWAYS: Final = Rule(
    # Never patched: KubeRay's own role does not allow it either.
    "gateway.networking.k8s.io",
    ("gateways", "httproutes"),
    (*FOLLOW, "get", "create", "update", "delete"),
)
THROUGH_THE_API_SERVER: Final = (
    # Ray heads are asked and told by their Service, Serve's proxies by their pods.
    Rule("", ("services/proxy",), ("get", "create", "update")),
    Rule("", ("pods/proxy",), ("get",)),
)
"""With --use-kubernetes-proxy."""
ON_OPENSHIFT: Final = Rule("route.openshift.io", ("routes",), KEEP)
FOLLOWED_AND_CHANGED: Final = (*FOLLOW, "get", "create", "update")
OF_SCHEDULERS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "volcano": (Rule("scheduling.volcano.sh", ("podgroups",), FOLLOWED_AND_CHANGED),),
    "yunikorn": (),
    "scheduler-plugins": (Rule("scheduling.x-k8s.io", ("podgroups",), FOLLOWED_AND_CHANGED),),
    "kai-scheduler": (),
    # Kubernetes allows no change of a gang's size, so that it is deleted and made anew.
    "kubernetes-was": (Rule("scheduling.k8s.io", ("workloads", "podgroups"), (*FOLLOWED_AND_CHANGED, "delete")),),
}
"""What each batch scheduler adds."""

READ: Final = ("get", "list", "watch")
ALL: Final = (*READ, "create", "delete", "patch", "update")
KUBERAYS_RULES: Final[tuple[Rule, ...]] = (
    Rule("ray.io", RAY_KINDS, ALL),
    Rule("ray.io", tuple(f"{kind}/status" for kind in RAY_KINDS), ("get", "patch", "update")),
    Rule("ray.io", tuple(f"{kind}/finalizers" for kind in RAY_KINDS), ("update",)),
    Rule("", ("pods",), (*ALL, "deletecollection")),
    Rule("", ("pods/status", "services/status", "pods/proxy"), ("get", "patch", "update")),
    Rule("", ("services/proxy",), ("get", "create", "patch", "update")),
    Rule("", ("pods/resize",), ("patch",)),
    Rule("", ("services", "persistentvolumeclaims"), ALL),
    Rule("", ("secrets",), (*READ, "create", "update", "delete")),
    Rule("", ("serviceaccounts",), (*READ, "create", "delete")),
    Rule("batch", ("jobs",), ALL),
    Rule("coordination.k8s.io", ("leases",), ("get", "list", "create", "update")),
    Rule("discovery.k8s.io", ("endpointslices",), READ),
    Rule("events.k8s.io", ("events",), ("create", "patch")),
    Rule("networking.k8s.io", ("ingresses",), ALL),
    Rule("networking.k8s.io", ("ingressclasses",), READ),
    Rule("gateway.networking.k8s.io", ("gateways", "httproutes"), (*READ, "create", "delete", "update")),
    Rule(RBAC, ("roles",), (*READ, "create", "delete", "update")),
    Rule(RBAC, ("rolebindings",), (*READ, "create", "delete")),
)
"""What KubeRay 1.7's own ClusterRole gives about kinds that are reconciled; it is there when only the image changes."""


def rights(rules: Iterable[Rule]) -> set[Right]:
    """Every single verb on every single kind."""
    return {Right(rule.group, kind, verb) for rule in rules for kind in rule.kinds for verb in rule.verbs}


def granted(name: str, rules: Sequence[Rule], subject: Json) -> list[tuple[str, Json]]:
    """A ClusterRole and its binding to the subject, each with the collection it goes to."""
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    return [
        (f"/apis/{RBAC}/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule.to_json() for rule in rules]}),
        (
            f"/apis/{RBAC}/v1/clusterrolebindings",
            {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]},
        ),
    ]
