"""What a cluster says about its history, and whose pods have a collector."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rayclusters.histories import ON_ACK, remembered
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import Object, ObjectMeta
from raykeeper.operator.raycluster.history_condition import history_finding
from raykeeper.operator.raycluster.pod import Pod, parse_pod
from raykeeper.operator.shared.conditions import Finding
from raykeeper.operator.shared.history import History

COLLECTOR = "ray-history-collector"
ADDRESS = "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"


def a_pod(name: str, *, native: bool = True, has_collector: bool = True, going: bool = False, **waiting: str) -> Pod:
    beside = [{"name": COLLECTOR}] if has_collector else []
    spec: dict[str, Any] = {"containers": [{"name": "ray"}, *([] if native else beside)]}
    spec["initContainers"] = beside if native else []
    statuses = [{"name": COLLECTOR, "state": {"waiting": waiting}}] if waiting else []
    status = {"phase": "Running", ("initContainerStatuses" if native else "containerStatuses"): statuses}
    deletion = "2026-11-16T00:00:00Z" if going else None
    parts = (msgspec.Raw(msgspec.json.encode(part)) for part in (spec, status))
    return parse_pod(Object(ObjectMeta(name=name, deletion_timestamp=deletion), *parts))


def said(cluster: ClusterBuilder, *pods: Pod, refusal: str = "", history: History | None = None) -> Finding | None:
    return history_finding(cluster.build(), pods, history or History(ON_ACK), refusal)


def reason(finding: Finding | None) -> tuple[str, str] | None:
    return (finding.status, finding.reason) if finding else None


def test_nothing_is_said_about_a_cluster_that_never_asked() -> None:
    assert said(a_cluster(), a_pod("a", has_collector=False)) is None


@pytest.mark.parametrize("native", [True, False])
def test_a_cluster_whose_pods_all_have_a_collector_says_where_its_history_opens(native: bool) -> None:
    finding = said(remembered(), a_pod("a", native=native), a_pod("b", native=native))
    assert reason(finding) == ("True", "AllPodsCollected")
    assert finding is not None
    assert finding.message == (
        "every pod has a collector; the history opens at http://localhost:8080/s/default/rc/latest/"
    )


def test_pods_from_before_are_named_and_stay() -> None:
    one = said(remembered(), a_pod("a", has_collector=False), a_pod("b"))
    assert one is not None
    assert reason(one) == ("False", "PodsWithoutCollector")
    assert one.message == "pod a is not collected, since no pod is restarted for it; new pods have a collector"
    two = said(remembered(), a_pod("a", has_collector=False), a_pod("b", has_collector=False))
    assert two is not None
    assert two.message.startswith("2 pods (a, ...) are not collected")


def test_pods_on_their_way_out_do_not_count() -> None:
    assert reason(said(remembered(), a_pod("a", has_collector=False, going=True))) == ("True", "AllPodsCollected")


def test_what_is_missing_in_the_settings_is_said() -> None:
    finding = said(remembered(), a_pod("a", has_collector=False), history=History())
    assert finding is not None
    assert reason(finding) == ("False", "HistoryNotConfigured")
    assert finding.message.startswith("pods are made without a collector: --history-collector-image")


def test_an_account_that_was_refused_is_said() -> None:
    finding = said(remembered(), refusal="serviceaccounts is forbidden")
    assert finding is not None
    assert (reason(finding), finding.message.partition(": ")[2]) == (
        ("False", "ServiceAccountRefused"),
        "serviceaccounts is forbidden",
    )


@pytest.mark.parametrize("native", [True, False])
def test_a_collector_that_cannot_start_is_told_in_the_kubelets_words(native: bool) -> None:
    pod = a_pod("a", native=native, reason="ImagePullBackOff", message="no such image")
    finding = said(remembered(), pod)
    assert finding is not None
    assert reason(finding) == ("False", "CollectorTrouble")
    assert finding.message == "the collector of pod a does not run: ImagePullBackOff, no such image"
    assert reason(said(remembered(), a_pod("a", native=native, reason="PodInitializing"))) == (
        "True",
        "AllPodsCollected",
    )


@pytest.mark.parametrize(
    ("name", "value", "goes_elsewhere"),
    [
        (ADDRESS, "http://sink:9000/v1/events", True),
        (ADDRESS, "http://localhost:8084/v1/events", False),
        (ADDRESS, "http://127.0.0.1:8084/v1/events", False),
        ("RAY_enable_ray_event", "0", True),
        ("RAY_enable_ray_event", "1", False),
        ("RAY_enable_core_worker_ray_event_to_aggregator", "False", True),
        ("OTHER", "0", False),
    ],
)
def test_events_that_a_template_keeps_away_are_told(name: str, value: str, goes_elsewhere: bool) -> None:
    finding = said(remembered(a_cluster().with_head_env(name, value)), a_pod("a"))
    assert reason(finding) == (("False", "EventsElsewhere") if goes_elsewhere else ("True", "AllPodsCollected"))


def test_switched_off_the_pods_that_are_still_collected_are_told_until_they_are_gone() -> None:
    finding = said(a_cluster(), a_pod("a"), a_pod("b", has_collector=False))
    assert finding is not None
    assert reason(finding) == ("False", "SwitchedOff")
    assert finding.message == (
        "pod a is still collected, though history is switched off: no pod is restarted for it; "
        "new pods have no collector"
    )
    assert said(a_cluster(), a_pod("b", has_collector=False)) is None


def test_collectors_that_the_user_describes_are_the_users_own_affair() -> None:
    options = {"collectorOptions": {"image": "mine:1"}}
    assert said(a_cluster().with_spec(historyServerOptions=options), a_pod("a")) is None
    own = [{"name": "ray", "image": "ray"}, {"name": COLLECTOR, "image": "mine"}]
    assert said(a_cluster().with_head_pod(containers=own), a_pod("a")) is None
    both = remembered(a_cluster().with_spec(historyServerOptions=options))
    assert reason(said(both, a_pod("a"), history=History())) == ("True", "AllPodsCollected")
