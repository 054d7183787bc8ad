"""Rules about where the GCS keeps its state: in Redis, or in RocksDB on a volume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api import labels
from raykeeper.api.containers import GCS_STORAGE_PATH, GCS_STORAGE_VOLUME
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.rayclusteroptions import GcsEmbeddedStorage, GcsFaultToleranceOptions
from raykeeper.operator.gates import Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.shared.features import gcs_backend
from raykeeper.operator.shared.violations import Violation, is_set

OPTIONS: Final = "gcsFaultToleranceOptions"
REDIS_ADDRESS_ENV: Final = "RAY_REDIS_ADDRESS"
REDIS_USERNAME_ENV: Final = "REDIS_USERNAME"
REDIS_PASSWORD_ENV: Final = "REDIS_PASSWORD"  # noqa: S105 - the name of a variable
ROCKSDB_ENV: Final = ("RAY_gcs_storage", "RAY_gcs_storage_path")


def fault_tolerance_is_asked_for_once(candidate: Candidate) -> Iterator[Violation]:
    if candidate.spec.gcs_fault_tolerance_options and candidate.annotations.get(labels.FT_ENABLED):
        cure = f"remove it, {candidate.path}.{OPTIONS} says it already"
        yield is_set(f"metadata.annotations[{labels.FT_ENABLED}]", cure)


def redis_needs_fault_tolerance(candidate: Candidate) -> Iterator[Violation]:
    """Ray would use Redis and nobody would ever clean it up."""
    if gcs_backend(candidate.spec, candidate.annotations) is None:
        cure = f"it turns GCS fault tolerance on; use {candidate.path}.{OPTIONS}.redisAddress instead"
        yield from candidate.head.forbid_env(REDIS_ADDRESS_ENV, cure)


def redis_is_described_by_the_options(candidate: Candidate) -> Iterator[Violation]:
    if candidate.spec.gcs_fault_tolerance_options is None:
        return
    head, options = candidate.head, f"{candidate.path}.{OPTIONS}"
    yield from head.forbid_ray_start_param("redis-password", f"use {options}.redisPassword instead")
    yield from head.forbid_env(REDIS_PASSWORD_ENV, f"use {options}.redisPassword instead")
    yield from head.forbid_env(REDIS_ADDRESS_ENV, f"use {options}.redisAddress instead")
    if candidate.annotations.get(labels.EXTERNAL_STORAGE_NAMESPACE):
        field = f"metadata.annotations[{labels.EXTERNAL_STORAGE_NAMESPACE}]"
        yield is_set(field, f"use {options}.externalStorageNamespace instead")


def redis_users_are_named_by_the_options(candidate: Candidate) -> Iterator[Violation]:
    cure = f"use {candidate.path}.{OPTIONS}.redisUsername instead"
    yield from candidate.head.forbid_ray_start_param("redis-username", cure)
    yield from candidate.head.forbid_env(REDIS_USERNAME_ENV, cure)


def only_rocksdb_has_a_volume(candidate: Candidate) -> Iterator[Violation]:
    options = candidate.spec.gcs_fault_tolerance_options
    if options and options.storage and options.backend != "rocksdb":
        cure = f"remove it, or set {candidate.path}.{OPTIONS}.backend: rocksdb"
        yield is_set(f"{candidate.path}.{OPTIONS}.storage", cure)


def rocksdb_is_described_by_the_options(candidate: Candidate) -> Iterator[Violation]:
    options = candidate.spec.gcs_fault_tolerance_options
    if options is None or options.backend != "rocksdb":
        return
    path = f"{candidate.path}.{OPTIONS}"
    yield from candidate.needs_gate(f"{OPTIONS}.backend", Gate.EMBEDDED_GCS_STORAGE)
    for field in _redis_fields(options):
        yield is_set(f"{path}.{field}", "remove it, the backend rocksdb has no use for it")
    yield from _claim_of_the_user_is_left_alone(f"{path}.storage", options.storage)
    yield from _room_for_the_volume(candidate)


def _redis_fields(options: GcsFaultToleranceOptions) -> list[str]:
    values = {
        "redisAddress": options.redis_address,
        "redisUsername": options.redis_username,
        "redisPassword": options.redis_password,
        "externalStorageNamespace": options.external_storage_namespace,
    }
    return [field for field, value in values.items() if value]


def _claim_of_the_user_is_left_alone(path: str, storage: GcsEmbeddedStorage | None) -> Iterator[Violation]:
    if storage is None or not storage.claim_name:
        return
    made = {
        "size": storage.size is not None,
        "storageClassName": storage.storage_class_name is not None,
        "accessModes": bool(storage.access_modes),
    }
    for field in (field for field, is_given in made.items() if is_given):
        yield is_set(f"{path}.{field}", f"remove it, the claim {storage.claim_name!r} exists already")


def _room_for_the_volume(candidate: Candidate) -> Iterator[Violation]:
    head = candidate.head
    for name in ROCKSDB_ENV:
        yield from head.forbid_env(name, "remove it, the operator writes it")
    for mount in head.container.get("volumeMounts") or []:
        if mount.get("mountPath") == GCS_STORAGE_PATH or mount.get("name") == GCS_STORAGE_VOLUME:
            field = f"{head.container_path}.volumeMounts[{mount.get('mountPath')}]"
            yield is_set(
                field, f"the operator mounts {GCS_STORAGE_VOLUME} at {GCS_STORAGE_PATH}; choose another name and path"
            )
    for volume in pod_spec(head.spec.template).get("volumes") or []:
        if volume.get("name") == GCS_STORAGE_VOLUME:
            yield is_set(f"{head.pod_path}.volumes[{GCS_STORAGE_VOLUME}]", "the operator adds it; choose another name")
