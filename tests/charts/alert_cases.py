"""For every alert: series of metrics with which it fires, and series with which it must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Series = Mapping[str, str]
"""Values by series, in promtool's words: `0+60x30` begins at 0 and grows by 60 a minute, thirty times."""

POD: Final = {"namespace": "team-a", "pod": "train-head"}
CONTROLLER: Final = {"controller": "raycluster"}
_OF_POD: Final = 'namespace="team-a",pod="train-head"'


@dataclass(frozen=True)
class AlertCase:
    """TARGET stands for the labels of the chart's own Service."""

    fires: Series
    stays_quiet: Series
    at: str = "40m"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the alert, beside its severity; those of TARGET are added where `has_target` is set."""
    has_target: bool = False


def _counter(name: str, labels: str = "", *, fires: str = "0+1x90", quiet: str = "7x90") -> tuple[Series, Series]:
    series = f"{name}{{{labels}TARGET}}"
    return {series: fires}, {series: quiet}


ALERT_CASES: Final[Mapping[str, AlertCase]] = {
    "RayOperatorDown": AlertCase({"up{TARGET}": "0x90"}, {"up{TARGET}": "1x90"}),
    "RayOperatorHasNoLeader": AlertCase(
        {'leader_election_master_status{name="a",TARGET}': "0x90"},
        {
            'leader_election_master_status{name="a",pod="1",TARGET}': "0x90",
            'leader_election_master_status{name="a",pod="2",TARGET}': "1x90",
        },
    ),
    "RayReconcileErrors": AlertCase(
        {
            'controller_runtime_reconcile_errors_total{controller="raycluster",TARGET}': "0+2x90",
            'controller_runtime_reconcile_total{controller="raycluster",TARGET}': "0+10x90",
        },
        {
            'controller_runtime_reconcile_errors_total{controller="raycluster",TARGET}': "0+1x90",
            'controller_runtime_reconcile_total{controller="raycluster",TARGET}': "0+20x90",
        },
        labels=CONTROLLER,
    ),
    "RayReconcileBug": AlertCase(
        *_counter("controller_runtime_reconcile_panics_total", 'controller="raycluster",'), labels=CONTROLLER
    ),
    "RayQueueSlow": AlertCase(
        {
            'workqueue_queue_duration_seconds_bucket{controller="raycluster",le="10",TARGET}': "0x90",
            'workqueue_queue_duration_seconds_bucket{controller="raycluster",le="100",TARGET}': "0+9x90",
            'workqueue_queue_duration_seconds_bucket{controller="raycluster",le="+Inf",TARGET}': "0+9x90",
        },
        {
            'workqueue_queue_duration_seconds_bucket{controller="raycluster",le="10",TARGET}': "0+9x90",
            'workqueue_queue_duration_seconds_bucket{controller="raycluster",le="+Inf",TARGET}': "0+9x90",
        },
        labels=CONTROLLER,
    ),
    "RayReconcileStuck": AlertCase(
        {'workqueue_longest_running_processor_seconds{controller="raycluster",TARGET}': "0+60x90"},
        {'workqueue_longest_running_processor_seconds{controller="raycluster",TARGET}': "299x90"},
        labels=CONTROLLER,
    ),
    "RayApiServerErrors": AlertCase(
        {
            'rest_client_requests_total{code="500",TARGET}': "0+1x90",
            'rest_client_requests_total{code="<error>",TARGET}': "0+1x90",
            'rest_client_requests_total{code="200",TARGET}': "0+20x90",
        },
        {
            'rest_client_requests_total{code="500",TARGET}': "0+1x90",
            'rest_client_requests_total{code="404",TARGET}': "0+50x90",
            'rest_client_requests_total{code="200",TARGET}': "0+50x90",
        },
    ),
    "RayOperatorWritesWithheld": AlertCase(*_counter("raykeeper_withheld_writes_total"), has_target=True),
    "RayClusterNotProvisioned": AlertCase(
        {'kuberay_cluster_condition_provisioned{condition="false",namespace="team-a",name="train"}': "1x90"},
        {'kuberay_cluster_condition_provisioned{condition="true",namespace="team-a",name="train"}': "1x90"},
        labels={"namespace": "team-a", "name": "train"},
    ),
    "RayApiDown": AlertCase({}, {"up{TARGET}": "1x90"}),
    "RayApiBug": AlertCase(*_counter("raykeeper_apiserver_bugs_total"), has_target=True),
    "RayApiErrors": AlertCase(
        {
            'grpc_server_handled_total{grpc_code="Internal",TARGET}': "0+1x90",
            'grpc_server_handled_total{grpc_code="OK",TARGET}': "0+10x90",
        },
        {
            'grpc_server_handled_total{grpc_code="NotFound",TARGET}': "0+10x90",
            'grpc_server_handled_total{grpc_code="OK",TARGET}': "0+10x90",
        },
    ),
    "RayApiSlow": AlertCase(
        {
            'grpc_server_handling_seconds_bucket{le="5",TARGET}': "0x90",
            'grpc_server_handling_seconds_bucket{le="10",TARGET}': "0+9x90",
            'grpc_server_handling_seconds_bucket{le="+Inf",TARGET}': "0+9x90",
        },
        {
            'grpc_server_handling_seconds_bucket{le="5",TARGET}': "0+9x90",
            'grpc_server_handling_seconds_bucket{le="+Inf",TARGET}': "0+9x90",
        },
    ),
    "RayHistoryServerDown": AlertCase({"up{TARGET}": "0x90"}, {"up{TARGET}": "1x90"}),
    "RayHistoryServerBug": AlertCase(*_counter("raykeeper_history_bugs_total"), has_target=True),
    "RayHistoryServerErrors": AlertCase(
        {
            'raykeeper_history_requests_total{route="/",status="503",TARGET}': "0+1x90",
            'raykeeper_history_requests_total{route="/",status="200",TARGET}': "0+10x90",
        },
        {
            'raykeeper_history_requests_total{route="/",status="404",TARGET}': "0+10x90",
            'raykeeper_history_requests_total{route="/",status="200",TARGET}': "0+10x90",
        },
    ),
    "RayHistoryServerSlow": AlertCase(
        {
            'raykeeper_history_request_seconds_bucket{le="5",TARGET}': "0x90",
            'raykeeper_history_request_seconds_bucket{le="10",TARGET}': "0+9x90",
            'raykeeper_history_request_seconds_bucket{le="+Inf",TARGET}': "0+9x90",
        },
        {
            'raykeeper_history_request_seconds_bucket{le="5",TARGET}': "0+9x90",
            'raykeeper_history_request_seconds_bucket{le="+Inf",TARGET}': "0+9x90",
        },
    ),
    "RayHistoryFactsLost": AlertCase(
        *_counter("raykeeper_observer_facts_lost_total", 'kind="pod",'), labels={"kind": "pod"}
    ),
    "RayHistoryFactsLate": AlertCase(
        {"raykeeper_observer_lag_seconds{TARGET}": "0+60x90"}, {"raykeeper_observer_lag_seconds{TARGET}": "12x90"}
    ),
    "RayHistoryStoreFails": AlertCase(*_counter("raykeeper_observer_write_failures_total"), has_target=True),
    "RayCollectorBucketDown": AlertCase(
        {f"raykeeper_collector_bucket_up{{{_OF_POD}}}": "0x90"},
        {f"raykeeper_collector_bucket_up{{{_OF_POD}}}": "1x90"},
        labels=POD,
    ),
    "RayCollectorDiskNearlyFull": AlertCase(
        {
            f"raykeeper_collector_spool_bytes{{{_OF_POD}}}": "90x90",
            f"raykeeper_collector_spool_max_bytes{{{_OF_POD}}}": "100x90",
        },
        {
            f"raykeeper_collector_spool_bytes{{{_OF_POD}}}": "70x90",
            f"raykeeper_collector_spool_max_bytes{{{_OF_POD}}}": "100x90",
        },
        labels=POD,
    ),
    "RayCollectorRefusesEvents": AlertCase(
        {f"raykeeper_collector_batches_refused_total{{{_OF_POD}}}": "0+1x90"},
        {f"raykeeper_collector_batches_refused_total{{{_OF_POD}}}": "3x90"},
        labels=POD,
    ),
    "RayCollectorLosesLogs": AlertCase(
        {f"raykeeper_collector_log_lost_bytes_total{{{_OF_POD}}}": "0+1x90"},
        {f"raykeeper_collector_log_lost_bytes_total{{{_OF_POD}}}": "0x90"},
        labels=POD,
    ),
    "RayDropsEvents": AlertCase(
        {f"raykeeper_collector_ray_dropped_events{{{_OF_POD}}}": "5x90"},
        {f"raykeeper_collector_ray_dropped_events{{{_OF_POD}}}": "0x90"},
        labels=POD,
    ),
}
