"""Every name derived from a RayCluster, each spelled here and nowhere else.

The clip rules are KubeRay's: another spelling would not find the objects that KubeRay created.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final

from raykeeper.api import labels

if TYPE_CHECKING:
    from raykeeper.api.raycluster import RayCluster

MAX_RAYCLUSTER_NAME_LENGTH: Final = 53  # "<name>-serve-svc" must be a DNS label, at most 63 characters
MAX_RAYJOB_NAME_LENGTH: Final = 47  # its clusters are called "<name>-" and five random characters
MAX_RAYSERVICE_NAME_LENGTH: Final = 47
MAX_RAYCRONJOB_NAME_LENGTH: Final = 36
MAX_DNS_LABEL_LENGTH: Final = 63
MAX_CLIPPED_NAME_LENGTH: Final = 50  # leaves room for "-worker-" and five random characters
ROUTE_NAME_BUDGET: Final = 51  # OpenShift joins name and namespace into one DNS label of a host name
SAFE_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of Kubernetes' generated names: no vowels, so no words; nothing that is easily misread."""


def clip_name(name: str) -> str:
    """The last 50 characters, not starting with a digit or punctuation."""
    return _with_safe_start(name[-MAX_CLIPPED_NAME_LENGTH:], forbidden=string.digits + string.punctuation)


def clip_label(value: str) -> str:
    """The last 63 characters, not starting with punctuation."""
    return _with_safe_start(value[-MAX_DNS_LABEL_LENGTH:], forbidden=string.punctuation)


def _with_safe_start(name: str, forbidden: str) -> str:
    return "r" + name[1:] if name[:1] and name[0] in forbidden else name


def head_service_name(cluster: RayCluster) -> str:
    """The user's own name from `headService.metadata.name`, else `<cluster>-head-svc`."""
    custom = cluster.spec.head_group_spec.head_service or {}
    return custom.get("metadata", {}).get("name") or f"{cluster.metadata.name}-head-svc"


def head_service_fqdn(cluster: RayCluster, cluster_domain: str) -> str:
    """The DNS name under which every other node reaches the head."""
    return f"{head_service_name(cluster)}.{cluster.metadata.namespace}.svc.{cluster_domain}"


def headless_worker_service_name(cluster: RayCluster) -> str:
    return f"{cluster.metadata.name}-headless"


def serve_service_name(cluster: RayCluster) -> str:
    return f"{cluster.metadata.name}-serve-svc"


def serve_label_value(cluster: RayCluster) -> str:
    """What `ray.io/serve` says on the serve service of a RayCluster that no RayService made."""
    return f"{cluster.metadata.name}-serve"


def head_ingress_name(cluster: RayCluster) -> str:
    return clip_name(f"{cluster.metadata.name}-head-ingress")


def head_route_name(cluster: RayCluster) -> str:
    """The first characters of `<cluster>-head-route`, as many as leave room for the namespace in one DNS label.

    Where KubeRay's cut ends in a dash (refused by the API server) or leaves nothing (it crashes), ours is shorter or
    one character long.
    """
    room = max(1, ROUTE_NAME_BUDGET - len(cluster.metadata.namespace))
    return clip_name(f"{cluster.metadata.name}-head-route"[:room].rstrip("-"))


def autoscaler_service_account_name(cluster: RayCluster) -> str:
    """The head template's own service account in full, else the clipped cluster name."""
    pod_spec = cluster.spec.head_group_spec.template.get("spec", {})
    return pod_spec.get("serviceAccountName") or clip_name(cluster.metadata.name)


def autoscaler_role_name(cluster: RayCluster) -> str:
    """The name of both the Role and the RoleBinding."""
    return clip_name(cluster.metadata.name)


def history_service_account_name(cluster: RayCluster, prefix: str) -> str:
    """The ServiceAccount of pods whose history is kept by annotation. In full: roles of a cloud trust it by name."""
    return f"{prefix}-{cluster.metadata.name}"


def auth_secret_name(cluster: RayCluster) -> str:
    """The Secret with the cluster's token: the user's, else the one that the operator makes."""
    options = cluster.spec.auth_options
    return (options.secret_name if options else None) or clip_name(cluster.metadata.name)


def gcs_storage_claim_name(cluster: RayCluster) -> str:
    """The PersistentVolumeClaim under the RocksDB of the GCS: the user's, else the one that the operator makes."""
    options = cluster.spec.gcs_fault_tolerance_options
    storage = options.storage if options else None
    return (storage.claim_name if storage else None) or f"{cluster.metadata.name}-gcs-pvc"


def redis_cleanup_job_name(cluster: RayCluster) -> str:
    return clip_label(f"{cluster.metadata.name}-redis-cleanup")


def identifier(cluster: RayCluster, node_type: str) -> str:
    """The value of the label `ray.io/identifier`: `<cluster>-head` or `<cluster>-worker`."""
    return clip_label(f"{cluster.metadata.name}-{node_type}")


def head_pod_prefix(cluster: RayCluster) -> str:
    """A head pod's name up to its random part; without the last dash it is the deterministic name."""
    return _pod_prefix(cluster.metadata.name, labels.HEAD)


def worker_pod_prefix(cluster: RayCluster, group_name: str) -> str:
    """A worker pod's name up to its random part."""
    return _pod_prefix(f"{cluster.metadata.name}-{group_name}", labels.WORKER)


def _pod_prefix(prefix: str, node_type: str) -> str:
    """Pods keep the first characters, unlike every other name: that is how users recognise them."""
    return f"{prefix[:MAX_CLIPPED_NAME_LENGTH]}-{node_type}-".lower()
