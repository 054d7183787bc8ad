"""Metrics about Ray objects under KubeRay's names, read from the cache when they are asked for.

KubeRay sets the provisioning time when it sees a cluster become ready, and forgets it with each restart; read from the
condition's own time it is always there, in whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from raykeeper.api.labels import ORIGINATED_FROM_CRD
from raykeeper.api.meta import Object
from raykeeper.api.raycluster import PROVISIONED

_IDENTITY = ("name", "namespace", "uid")


class _Condition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, gc=False):
    conditions: tuple[_Condition, ...] = ()


_decode_status = msgspec.json.Decoder(_Status).decode


def new_registry() -> CollectorRegistry:
    """A registry that tells of this process: memory, processor time, files, garbage collection, Python."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class RayClusterCollector(Collector):
    """One series per cluster and metric, gone with the cluster.

    A scrape is answered by the event loop that does the work, so a status is decoded once, not with every scrape.
    """

    def __init__(self, clusters: Iterable[Object]) -> None:
        self._clusters = clusters
        self._known: dict[tuple[str, str], _Condition | None] = {}  # by uid and resource version

    def describe(self) -> Iterable[Metric]:
        """Names alone, so that registering does not walk the cache."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        info, provisioned, seconds = _families()
        known, self._known = self._known, {}
        for cluster in self._clusters:
            metadata = cluster.metadata
            identity = [metadata.name, metadata.namespace, metadata.uid]
            version = (metadata.uid, metadata.resource_version)
            condition = self._known[version] = known[version] if version in known else _provisioned(cluster)
            is_provisioned = condition is not None and condition.status == "True"
            info.add_metric([*identity, metadata.labels.get(ORIGINATED_FROM_CRD, "None")], 1)
            provisioned.add_metric([*identity, str(is_provisioned).lower()], 1)
            if is_provisioned and condition is not None and condition.last_transition_time is not None:
                created = datetime.fromisoformat(metadata.creation_timestamp)
                seconds.add_metric(identity, (condition.last_transition_time - created).total_seconds())
        yield from (info, provisioned, seconds)


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("kuberay_cluster_info", "RayClusters, and what made them", labels=[*_IDENTITY, "owner_kind"]),
        GaugeMetricFamily(
            "kuberay_cluster_condition_provisioned",
            "Whether all pods of a RayCluster were ready at some time",
            labels=[*_IDENTITY, "condition"],
        ),
        GaugeMetricFamily(
            "kuberay_cluster_provisioned_duration_seconds",
            "Time from the creation of a RayCluster until all its pods were ready",
            labels=_IDENTITY,
        ),
    )


def _provisioned(cluster: Object) -> _Condition | None:
    status = _decode_status(cluster.status or b"{}")
    return next((condition for condition in status.conditions if condition.type == PROVISIONED), None)
