"""The Job that removes a deleted cluster's keys from Redis, made from the head pod to reach the same Redis."""

from __future__ import annotations

import copy
import re
import shlex
from typing import Final

from raykeeper.api import labels
from raykeeper.api.containers import HISTORY_COLLECTOR, RAY_CONTAINER_INDEX, WAIT_FOR_TLS_IP_SAN
from raykeeper.api.meta import JSON
from raykeeper.api.names import auth_secret_name, redis_cleanup_job_name
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner

DEADLINE_SECONDS: Final = 300
DEFAULT_DELETION_TIMEOUT_SECONDS: Final = 300
# Ray's client of Redis tries for a minute: a Redis that restarts just now is no reason to leave the keys.
RETRY_ENV: Final = {"RAY_redis_db_connect_retries": "120", "RAY_redis_db_connect_wait_milliseconds": "500"}
RESOURCES: Final = {"cpu": "200m", "memory": "256Mi"}

UNNEEDED_INIT_CONTAINERS: Final = frozenset({WAIT_FOR_TLS_IP_SAN, HISTORY_COLLECTOR})
UNNEEDED_FIELDS: Final = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "ports")
"""What belongs to a container that serves, not to a program that ends."""

LONGEST_DELETION_TIMEOUT_SECONDS: Final = 10**9  # thirty years; more is no time that can be added to a date
_WHOLE_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}", re.ASCII)

FINISHED_CONDITIONS: Final = frozenset({"Complete", "Failed", "FailureTarget"})

# Written without single quotes, so that the shell's quoting of it stays readable.
PROGRAM: Final = """\
import os, sys
from urllib.parse import unquote, urlparse
from ray._private.gcs_utils import cleanup_redis_storage

address = os.environ.get("RAY_REDIS_ADDRESS", "").split(",")[0].strip()
url = urlparse(address if "://" in address else "redis://" + address)
# Versions of Ray that know no user names do not know the argument either.
user = {}
if "REDIS_USERNAME" in os.environ:
    user["username"] = os.environ["REDIS_USERNAME"] or unquote(url.username or "")
is_clean = cleanup_redis_storage(
    host=url.hostname,
    port=url.port or 6379,
    password=os.environ.get("REDIS_PASSWORD") or unquote(url.password or ""),
    use_ssl=url.scheme == "rediss",
    storage_namespace=os.environ["RAY_external_storage_namespace"],
    **user,
)
sys.exit(0 if is_clean else "the keys of this cluster may be left in Redis")
"""


def desired_redis_cleanup_job(cluster: RayCluster, head_pod: JSON) -> JSON:
    """The Job for a cluster whose head pod, as the operator would make it, is given."""
    metadata = head_pod["metadata"]
    pod_labels = (metadata.get("labels") or {}) | {labels.NODE_TYPE: labels.REDIS_CLEANUP}
    annotations = dict(metadata.get("annotations") or {})
    # By this label Jobs are watched; a template may have given the pod another, and the end would not be seen.
    job_labels = pod_labels | {labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR}
    job_metadata = child_metadata(Owner.of(cluster), redis_cleanup_job_name(cluster), job_labels)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": job_metadata | {"annotations": annotations},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "template": {
                "metadata": {"labels": pod_labels, "annotations": annotations},
                "spec": _pod_spec(cluster, pod_spec(head_pod)),
            },
        },
    }


def _pod_spec(cluster: RayCluster, head: JSON) -> JSON:
    spec = copy.deepcopy(head)
    init_containers = [c for c in spec.pop("initContainers", None) or [] if c["name"] not in UNNEEDED_INIT_CONTAINERS]
    if init_containers:
        spec["initContainers"] = init_containers
    # A cluster deleted in the foreground loses its own ServiceAccount before this pod starts, and the pod needs none.
    if not pod_spec(cluster.spec.head_group_spec.template).get("serviceAccountName"):
        spec.pop("serviceAccountName", None)
    spec["containers"] = [_container(cluster, spec["containers"][RAY_CONTAINER_INDEX])]
    spec["restartPolicy"] = "Never"
    return spec


def _container(cluster: RayCluster, ray: JSON) -> JSON:
    container = {key: value for key, value in ray.items() if key not in UNNEEDED_FIELDS}
    container["command"] = ["/bin/bash", "-c", "--"]
    container["args"] = [f"exec python -c {shlex.quote(PROGRAM)}"]
    container["env"] = _environment(cluster, ray.get("env") or [])
    container["resources"] = {"requests": dict(RESOURCES), "limits": dict(RESOURCES)}
    return container


def _environment(cluster: RayCluster, env: list[JSON]) -> list[JSON]:
    """The head's environment without the cluster's token, whose Secret may be gone already."""
    kept = [entry for entry in env if entry["name"] not in RETRY_ENV and not _reads_token(cluster, entry)]
    return kept + [{"name": name, "value": value} for name, value in RETRY_ENV.items()]


def _reads_token(cluster: RayCluster, entry: JSON) -> bool:
    reference = (entry.get("valueFrom") or {}).get("secretKeyRef") or {}
    return bool(cluster.spec.auth_options) and reference.get("name") == auth_secret_name(cluster)


def is_finished(job_status: JSON) -> bool:
    """Whether the Job has ended, well or not: a Redis that cannot be cleaned must not keep the cluster for ever."""
    return any(
        condition["type"] in FINISHED_CONDITIONS and condition["status"] == "True"
        for condition in job_status.get("conditions") or []
    )


def deletion_timeout_seconds(cluster: RayCluster) -> int:
    """How long the deletion waits for the clean-up: the annotation's positive whole number, else five minutes."""
    text = cluster.metadata.annotations.get(labels.GCS_FT_DELETION_TIMEOUT, "")
    seconds = int(text) if _WHOLE_NUMBER.fullmatch(text) else 0
    return min(seconds, LONGEST_DELETION_TIMEOUT_SECONDS) or DEFAULT_DELETION_TIMEOUT_SECONDS
