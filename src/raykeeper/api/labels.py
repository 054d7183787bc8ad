"""Labels, annotations and finalizers that users, Ray and KubeRay's operator know: all of them are interface.

Take-over in both directions rests on these spellings, so none may change.
"""

from __future__ import annotations

from typing import Final

# Labels of pods and of the objects around them.
CLUSTER: Final = "ray.io/cluster"
NODE_TYPE: Final = "ray.io/node-type"
GROUP: Final = "ray.io/group"
IS_RAY_NODE: Final = "ray.io/is-ray-node"
IDENTIFIER: Final = "ray.io/identifier"
SERVE: Final = "ray.io/serve"
HEADLESS_WORKER_SERVICE: Final = "ray.io/headless-worker-svc"
ORIGINATED_FROM_CR_NAME: Final = "ray.io/originated-from-cr-name"
ORIGINATED_FROM_CRD: Final = "ray.io/originated-from-crd"
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""Kubernetes' own, on EndpointSlices: the Service they are of."""
CRONJOB_NAME: Final = "ray.io/cronjob-name"
JOB_SUBMISSION_MODE: Final = "ray.io/job-submission-mode"
REPLICA_NAME: Final = "ray.io/worker-group-replica-name"
REPLICA_INDEX: Final = "ray.io/worker-group-replica-index"
REPLICA_HOST_INDEX: Final = "ray.io/replica-host-index"
PRIORITY_CLASS_NAME: Final = "ray.io/priority-class-name"
GANG_SCHEDULING_ENABLED: Final = "ray.io/gang-scheduling-enabled"
APP_NAME: Final = "app.kubernetes.io/name"
CREATED_BY: Final = "app.kubernetes.io/created-by"

# Values of labels.
HEAD: Final = "head"
WORKER: Final = "worker"
REDIS_CLEANUP: Final = "redis-cleanup"
HEAD_GROUP: Final = "headgroup"
YES: Final = "yes"
APP_NAME_KUBERAY: Final = "kuberay"
"""Users select on it, so it stays KubeRay's also on objects that we create."""
CREATED_BY_KUBERAY_OPERATOR: Final = "kuberay-operator"

# Annotations.
FT_ENABLED: Final = "ray.io/ft-enabled"
EXTERNAL_STORAGE_NAMESPACE: Final = "ray.io/external-storage-namespace"
GCS_FT_DELETION_TIMEOUT: Final = "ray.io/gcs-ft-deletion-timeout"
OVERWRITE_CONTAINER_CMD: Final = "ray.io/overwrite-container-cmd"
ENABLE_SERVE_SERVICE: Final = "ray.io/enable-serve-service"
INITIALIZING_TIMEOUT: Final = "ray.io/initializing-timeout"
DISABLE_PROVISIONED_HEAD_RESTART: Final = "ray.io/disable-provisioned-head-restart"
HASH_WITHOUT_REPLICAS: Final = "ray.io/hash-without-replicas-and-workers-to-delete"
NUM_WORKER_GROUPS: Final = "ray.io/num-worker-groups"
RECREATE_HASH: Final = "ray.io/upgrade-strategy-recreate-hash"
KUBERAY_VERSION: Final = "ray.io/kuberay-version"
CRONJOB_SCHEDULED_TIMESTAMP: Final = "ray.io/cronjob-scheduled-timestamp"
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
HISTORY: Final = "raykeeper.io/history"
ENABLE_HISTORYSERVER: Final = "ray.alibabacloud.com/enable-historyserver"
"""The same in the words of Alibaba's ACK."""

# Finalizers.
GCS_FT_REDIS_CLEANUP_FINALIZER: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"
RAYJOB_FINALIZER: Final = "ray.io/rayjob-finalizer"
RAYSERVICE_FINALIZER: Final = "ray.io/rayservice-finalizer"

# Values of `managedBy`.
MANAGED_BY_KUBERAY: Final = "ray.io/kuberay-operator"
MANAGED_BY_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
