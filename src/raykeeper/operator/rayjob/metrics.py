"""Metrics about RayJobs under KubeRay's names, read from the cache when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from raykeeper.api.meta import Object, ObjectKey
from raykeeper.api.times import parse_time
from raykeeper.operator.rayjob.states import ENDED, FAILED, RETRYING

_IDENTITY = ("name", "namespace", "uid")


class _Attempt(msgspec.Struct, gc=False, rename="camel"):
    start_time: str | None = None
    end_time: str | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    job_deployment_status: str = ""
    start_time: str | None = None
    end_time: str | None = None
    failed: int = 0
    ray_cluster_name: str = ""
    failed_attempts: tuple[_Attempt, ...] = ()


_decode_status = msgspec.json.Decoder(_Status).decode


class RayJobCollector(Collector):
    """One series per job and metric, gone with the job. How long an attempt took is known also after a restart."""

    def __init__(self, jobs: Iterable[Object], has_cluster: Callable[[ObjectKey], bool]) -> None:
        self._jobs = jobs
        self._has_cluster = has_cluster

    def describe(self) -> Iterable[Metric]:
        """Names alone, so that registering does not walk the cache."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        info, states, seconds, outlived = _families()
        for job in self._jobs:
            metadata, status = job.metadata, _decode_status(job.status or b"{}")
            identity = [metadata.name, metadata.namespace, metadata.uid]
            state = status.job_deployment_status
            info.add_metric(identity, 1)
            states.add_metric([*identity, state], 1)
            for labels, took in _durations(status):
                seconds.add_metric([*identity, *labels], took)
            is_left = state in ENDED and self._has_cluster(ObjectKey(metadata.namespace, status.ray_cluster_name))
            outlived.add_metric([*identity, status.ray_cluster_name], int(is_left))
        yield from (info, states, seconds, outlived)


def _durations(status: _Status) -> Iterator[tuple[list[str], float]]:
    """State after an attempt and number of failed ones before it, and how long it took."""
    first = status.failed - len(status.failed_attempts) - (status.job_deployment_status == FAILED)
    for number, attempt in enumerate(status.failed_attempts, first):
        if (took := _seconds(attempt.start_time, attempt.end_time)) is not None:
            yield [RETRYING, str(max(number, 0))], took
    took = _seconds(status.start_time, status.end_time)
    if status.job_deployment_status in ENDED and took is not None:
        before = status.failed - (status.job_deployment_status == FAILED)
        yield [status.job_deployment_status, str(max(before, 0))], took


def _seconds(start: str | None, end: str | None) -> float | None:
    begun, ended = parse_time(start), parse_time(end)
    return (ended - begun).total_seconds() if begun and ended else None


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("kuberay_job_info", "RayJobs", labels=_IDENTITY),
        GaugeMetricFamily(
            "kuberay_job_deployment_status", "How far a RayJob is", labels=[*_IDENTITY, "deployment_status"]
        ),
        GaugeMetricFamily(
            "kuberay_job_execution_duration_seconds",
            "Time from the start of an attempt until it had ended",
            labels=[*_IDENTITY, "job_deployment_status", "retry_count"],
        ),
        GaugeMetricFamily(
            "raykeeper_job_outlived_by_cluster",
            "Whether the RayCluster of a RayJob that has ended is still there",
            labels=[*_IDENTITY, "ray_cluster"],
        ),
    )
