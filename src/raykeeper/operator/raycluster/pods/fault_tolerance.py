"""What keeps a cluster alive when its head dies: the GCS's state outside the head's memory, and patient workers."""

from __future__ import annotations

from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.containers import GCS_STORAGE_PATH, GCS_STORAGE_VOLUME
from raykeeper.api.meta import JSON
from raykeeper.api.rayclusteroptions import GcsFaultToleranceOptions, RedisCredential
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.shared.env import env_of, literal, missing
from raykeeper.operator.shared.features import GcsBackend, gcs_backend
from raykeeper.operator.shared.mounts import attach

REDIS_PASSWORD: Final = "REDIS_PASSWORD"  # noqa: S105 - the name of a variable
REDIS_USERNAME: Final = "REDIS_USERNAME"
PASSWORD_PARAM: Final = "redis-password"  # noqa: S105 - the name of an option
RECONNECT_SECONDS: Final = "600"  # ten times Ray's own patience: a new head must be scheduled and pull its image


def backend(node: RayNode) -> GcsBackend | None:
    return gcs_backend(node.spec, node.cluster.metadata.annotations)


def storage_namespace(node: RayNode) -> str:
    """The prefix of this cluster's keys in Redis. An empty annotation says that there is none, as in KubeRay."""
    options = node.spec.gcs_fault_tolerance_options
    asked = options.external_storage_namespace if options else ""
    meta = node.cluster.metadata
    return asked or meta.annotations.get(labels.EXTERNAL_STORAGE_NAMESPACE, meta.uid)


def head_annotations(node: RayNode) -> dict[str, str]:
    """How a head pod tells whether, and under which prefix, its state outlives it."""
    chosen = backend(node)
    said = {labels.FT_ENABLED: "true" if chosen else "false"}
    return said | ({labels.EXTERNAL_STORAGE_NAMESPACE: storage_namespace(node)} if chosen == "redis" else {})


def redis_params(node: RayNode) -> dict[str, str]:
    """The options of the head's `ray start` with Redis' credentials, which the shell puts in."""
    options = node.spec.gcs_fault_tolerance_options
    if not node.is_head or options is None or backend(node) != "redis":
        return {}
    username = {"redis-username": f"${REDIS_USERNAME}"} if options.redis_username else {}
    return username | ({PASSWORD_PARAM: f"${REDIS_PASSWORD}"} if options.redis_password else {})


def fault_tolerance_env(node: RayNode) -> list[JSON]:
    """The variables of the Ray container, without those that the user set."""
    env = env_of(node.users_container)
    if backend(node) is None:
        return []
    if not node.is_head:
        return missing(env, [literal("RAY_gcs_rpc_server_reconnect_timeout_s", RECONNECT_SECONDS)])
    if backend(node) == "rocksdb":
        return [literal("RAY_gcs_storage", "rocksdb"), literal("RAY_gcs_storage_path", GCS_STORAGE_PATH)]
    return missing(env, [literal("RAY_external_storage_namespace", storage_namespace(node)), *_redis_env(node)])


def _redis_env(node: RayNode) -> list[JSON]:
    options = node.spec.gcs_fault_tolerance_options
    if options is not None:
        return _redis_env_of_options(options)
    # The older way, by annotation: the user sets the address, the password may stand among the options.
    password = node.group.ray_start_params.get(PASSWORD_PARAM)
    return [literal(REDIS_PASSWORD, password)] if password else []


def _redis_env_of_options(options: GcsFaultToleranceOptions) -> list[JSON]:
    env = [literal("RAY_REDIS_ADDRESS", options.redis_address)]
    if options.redis_username:
        env.append(_credential(REDIS_USERNAME, options.redis_username))
    if options.redis_password:
        env.append(_credential(REDIS_PASSWORD, options.redis_password))
    return env


def _credential(name: str, credential: RedisCredential) -> JSON:
    if credential.value_from is not None:
        return {"name": name, "valueFrom": credential.value_from}
    return literal(name, credential.value)


def add_gcs_storage(node: RayNode, spec: JSON, container: JSON) -> None:
    """Give a head that keeps its state in RocksDB the volume for it."""
    if not node.is_head or backend(node) != "rocksdb":
        return
    options = node.spec.gcs_fault_tolerance_options
    storage = options.storage if options else None
    mount = {"name": GCS_STORAGE_VOLUME, "mountPath": GCS_STORAGE_PATH}
    if storage and storage.sub_path:
        mount["subPath"] = storage.sub_path
    claim = {"claimName": names.gcs_storage_claim_name(node.cluster)}
    attach(spec, container, {"name": GCS_STORAGE_VOLUME, "persistentVolumeClaim": claim}, mount)
