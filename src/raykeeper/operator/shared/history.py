"""History by annotation: which clusters ask for it, and what the operator's settings make of that. Pure.

KubeRay's own way, `spec.historyServerOptions`, wins over an annotation: who writes it says everything there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import msgspec

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster, RayClusterSpec
from raykeeper.api.rayclusteroptions import CollectorOptions, HistoryServerOptions
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.env import literal
from raykeeper.operator.shared.history_problems import OSS_BACKEND, is_on_oss, problems, store_folder
from raykeeper.operator.shared.sidecars import COLLECTOR_RESOURCES, collector_resources

ANNOTATIONS: Final = (labels.HISTORY, labels.ENABLE_HISTORYSERVER)
"""By which history is asked for; the first that is there counts."""
DEFAULT_ACCOUNT_PREFIX: Final = "ray-historyserver"
"""The one in Alibaba's documentation, so that the conditions of roles made by it hold."""
NOT_CONFIGURED: Final = "HistoryNotConfigured"
"""Reason of the condition and the Warning where the settings are not complete."""
STORE_VOLUME: Final = "ray-history-store"


def asks_for_history(annotations: Mapping[str, str]) -> bool:
    said = next((annotations[name] for name in ANNOTATIONS if name in annotations), "")
    return said.lower() == "true"


def without_history(cluster: RayCluster) -> RayCluster:
    """The cluster as if no annotation had asked."""
    kept = {name: value for name, value in cluster.metadata.annotations.items() if name not in ANNOTATIONS}
    return msgspec.structs.replace(cluster, metadata=msgspec.structs.replace(cluster.metadata, annotations=kept))


@dataclass(frozen=True)
class Collector:
    """The collector beside Ray in the pods of one cluster, whoever asked for it."""

    image: str
    image_pull_policy: str
    resources: JSON
    env: tuple[JSON, ...]
    env_from: tuple[JSON, ...] = ()
    is_annotated: bool = False
    """An annotation asked for it, so that all about it comes from the operator's settings."""

    @classmethod
    def of_options(cls, options: CollectorOptions) -> Collector:
        """The one that a spec describes, as KubeRay reads it."""
        policy = options.image_pull_policy or "IfNotPresent"
        return cls(options.image or "", policy, collector_resources(options), options.env)


@dataclass(frozen=True)
class History:
    """What the settings make of an annotation."""

    settings: HistorySettings = field(default_factory=HistorySettings)

    @cached_property
    def problem(self) -> str:
        """Why no history can be kept for an annotation, and the cure; empty where it can."""
        return next(problems(self.settings), "")

    def problem_of(self, spec: RayClusterSpec, annotations: Mapping[str, str]) -> str:
        """The problem where it keeps this cluster's history from being kept."""
        return self.problem if _counts(spec, annotations) else ""

    def collector(self, spec: RayClusterSpec, annotations: Mapping[str, str]) -> Collector | None:
        """The collector that the pods of a cluster get; None where they get none."""
        own = spec.history_server_options
        if own is not None:
            return Collector.of_options(own.collector_options) if own.collector_options else None
        return self._collector if self.is_kept(spec, annotations) else None

    def is_kept(self, spec: RayClusterSpec, annotations: Mapping[str, str]) -> bool:
        """Whether an annotation, and nothing else, has the history of a cluster kept."""
        return _counts(spec, annotations) and not self.problem

    def account_name(self, cluster: RayCluster) -> str | None:
        """The ServiceAccount of all pods of the cluster; None where they keep their own."""
        settings = self.settings
        needs_one = settings.cloud_role_name or settings.service_account_annotations
        prefix = settings.service_account_prefix or (DEFAULT_ACCOUNT_PREFIX if needs_one else "")
        if not prefix or not self.is_kept(cluster.spec, cluster.metadata.annotations):
            return None
        return names.history_service_account_name(cluster, prefix)

    def with_collector(self, spec: RayClusterSpec, annotations: Mapping[str, str]) -> RayClusterSpec:
        """The spec as if it named the collector itself, for whoever counts what its pods ask for."""
        if not self.is_kept(spec, annotations):
            return spec
        options = CollectorOptions(resources=self._collector.resources)
        return msgspec.structs.replace(spec, history_server_options=HistoryServerOptions(options))

    @cached_property
    def store_volume(self) -> tuple[JSON, JSON] | None:
        """The volume that a store in a folder is on, and its mount; None for stores elsewhere."""
        folder = store_folder(self.settings)
        if not folder or not self.settings.store_volume:
            return None
        return {"name": STORE_VOLUME, **self.settings.store_volume}, {"name": STORE_VOLUME, "mountPath": folder}

    def url(self, namespace: str, cluster: str) -> str:
        """Where people read the history of a cluster; empty where nobody said."""
        base = self.settings.server_url
        return f"{base}/s/{namespace}/{cluster}/latest/" if base else ""

    @cached_property
    def _collector(self) -> Collector:
        settings = self.settings
        secret = {"secretRef": {"name": settings.secret_name, "optional": True}}
        return Collector(
            image=settings.collector_image,
            image_pull_policy=settings.collector_image_pull_policy or "IfNotPresent",
            resources=settings.collector_resources or COLLECTOR_RESOURCES,
            env=(*_store_env(settings), *map(_optional, settings.env)),
            env_from=(secret,) if settings.secret_name else (),
            is_annotated=True,
        )


def _counts(spec: RayClusterSpec, annotations: Mapping[str, str]) -> bool:
    """Whether an annotation asks, and the spec does not say everything itself."""
    return asks_for_history(annotations) and spec.history_server_options is None


def _store_env(settings: HistorySettings) -> Iterator[JSON]:
    if settings.store_url:
        yield literal("RAYKEEPER_STORE_URL", settings.store_url)
    if not is_on_oss(settings):
        return
    said = {
        "STORAGE_BACKEND": OSS_BACKEND,
        "STORAGE_ROOT_DIR": settings.oss_root_dir,
        "OSS_BUCKET": settings.oss_bucket,
        "OSS_ENDPOINT": settings.oss_endpoint,
        "OSS_REGION": settings.oss_region,
    }
    yield from (literal(name, value) for name, value in said.items() if value)


def _optional(variable: JSON) -> JSON:
    """A variable whose Secret or ConfigMap may be missing: a pod that waited for it would never start."""
    source = variable.get("valueFrom") or {}
    loosened = {
        kind: {"optional": True, **reference} if kind in ("secretKeyRef", "configMapKeyRef") else reference
        for kind, reference in source.items()
    }
    return {**variable, "valueFrom": loosened} if loosened else variable
