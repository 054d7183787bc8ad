"""Metrics about RayServices under KubeRay's names, read from the cache when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from raykeeper.api.meta import Object
from raykeeper.operator.rayservice.states import READY, UPGRADE_IN_PROGRESS

_IDENTITY = ("name", "namespace", "uid")


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, gc=False):
    conditions: tuple[_Condition, ...] = ()


_decode_status = msgspec.json.Decoder(_Status).decode


class RayServiceCollector(Collector):
    """One series per service and metric, gone with the service."""

    def __init__(self, services: Iterable[Object]) -> None:
        self._services = services

    def describe(self) -> Iterable[Metric]:
        """Names alone, so that registering does not walk the cache."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        info, ready, upgrading = _families()
        for service in self._services:
            metadata, status = service.metadata, _decode_status(service.status or b"{}")
            identity = [metadata.name, metadata.namespace, metadata.uid]
            held = {one.type for one in status.conditions if one.status == "True"}
            info.add_metric(identity, 1)
            ready.add_metric([*identity, str(READY in held).lower()], 1)
            upgrading.add_metric([*identity, str(UPGRADE_IN_PROGRESS in held).lower()], 1)
        yield from (info, ready, upgrading)


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = [*_IDENTITY, "condition"]
    return (
        GaugeMetricFamily("kuberay_service_info", "RayServices", labels=_IDENTITY),
        GaugeMetricFamily("kuberay_service_condition_ready", "Whether a RayService is ready", labels=labels),
        GaugeMetricFamily(
            "kuberay_service_condition_upgrade_in_progress", "Whether a RayService gets a new cluster", labels=labels
        ),
    )
