"""What the autoscaler in the head pod may do: a ServiceAccount, a Role and the RoleBinding between them."""

from __future__ import annotations

from raykeeper.api.meta import JSON
from raykeeper.api.names import autoscaler_role_name, autoscaler_service_account_name
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.children.labels import common_labels
from raykeeper.operator.shared.children.drift import Drift, Replace, differing, drift
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner

RBAC_GROUP = "rbac.authorization.k8s.io"


def users_service_account(cluster: RayCluster) -> str | None:
    """The ServiceAccount that the user chose for the head; it must exist, the operator does not make it."""
    return pod_spec(cluster.spec.head_group_spec.template).get("serviceAccountName") or None


def desired_service_account(cluster: RayCluster) -> JSON:
    """The ServiceAccount of a head pod for which the user chose none."""
    name = autoscaler_service_account_name(cluster)
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": child_metadata(Owner.of(cluster), name, common_labels(cluster)),
    }


def desired_role(cluster: RayCluster) -> JSON:
    """What Ray's autoscaler does: watch and resize pods, and write its decisions into the RayCluster."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": child_metadata(Owner.of(cluster), autoscaler_role_name(cluster), common_labels(cluster)),
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
            {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
        ],
    }


def desired_role_binding(cluster: RayCluster) -> JSON:
    """Gives the Role to the head pod's ServiceAccount, whoever made that."""
    return autoscaler_binding(cluster, autoscaler_role_name(cluster), autoscaler_service_account_name(cluster))


def autoscaler_binding(cluster: RayCluster, name: str, account: str) -> JSON:
    """A binding of that name, which gives the Role to a ServiceAccount."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": child_metadata(Owner.of(cluster), name, common_labels(cluster)),
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": cluster.metadata.namespace}],
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": autoscaler_role_name(cluster)},
    }


def role_drift(desired: JSON, actual: JSON) -> Drift:
    return drift(desired, actual, differing(desired, actual, "rules"))


def role_binding_drift(desired: JSON, actual: JSON) -> Drift:
    """A binding cannot be turned to another Role, and KubeRay's rights do not allow to change its subjects."""
    if desired["roleRef"] != actual["roleRef"]:
        return Replace(f"it binds {actual['roleRef']['name']!r}, and the role of a binding cannot be changed")
    return Replace("it has other subjects") if differing(desired, actual, "subjects") else None
