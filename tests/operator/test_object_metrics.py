"""KubeRay's metrics about RayClusters, from what the cache holds at the moment of the scrape."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import Object, ObjectMeta
from raykeeper.api.raycluster import PROVISIONED
from raykeeper.operator import metrics
from raykeeper.operator.metrics import RayClusterCollector, new_registry

IDENTITY = {"name": "first", "namespace": "team-a", "uid": "uid-1"}


def a_cluster(*conditions: dict[str, str], **labels: str) -> Object:
    metadata = ObjectMeta("first", "team-a", "uid-1", creation_timestamp="2026-01-01T00:00:00Z", labels=labels)
    status = {"conditions": list(conditions)} if conditions else {}
    return Object(metadata, status=msgspec.Raw(msgspec.json.encode(status)))


def provisioned(status: str) -> dict[str, str]:
    return {"type": PROVISIONED, "status": status, "lastTransitionTime": "2026-01-01T00:00:42Z"}


@pytest.fixture
def clusters() -> list[Object]:
    return []


@pytest.fixture
def registry(clusters: list[Object]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(RayClusterCollector(clusters))
    return registry


@pytest.mark.parametrize(("owner", "kind"), [({}, "None"), ({"ray.io/originated-from-crd": "RayJob"}, "RayJob")])
def test_each_cluster_is_there_with_what_made_it(
    owner: dict[str, str], kind: str, clusters: list[Object], registry: CollectorRegistry
) -> None:
    clusters.append(a_cluster(**owner))
    assert registry.get_sample_value("kuberay_cluster_info", {**IDENTITY, "owner_kind": kind}) == 1


@pytest.mark.parametrize(
    ("conditions", "label", "seconds"),
    [
        ([], "false", None),
        ([{"type": "HeadPodReady", "status": "True"}], "false", None),
        ([provisioned("False")], "false", None),
        ([{"type": "HeadPodReady", "status": "True"}, provisioned("True")], "true", 42.0),
    ],
)
def test_provisioning_is_read_from_the_condition(
    conditions: list[dict[str, str]],
    label: str,
    seconds: float | None,
    clusters: list[Object],
    registry: CollectorRegistry,
) -> None:
    clusters.append(a_cluster(*conditions))
    labels = {**IDENTITY, "condition": label}
    assert registry.get_sample_value("kuberay_cluster_condition_provisioned", labels) == 1
    assert registry.get_sample_value("kuberay_cluster_provisioned_duration_seconds", IDENTITY) == seconds


def test_a_cluster_without_a_status_is_not_provisioned(clusters: list[Object], registry: CollectorRegistry) -> None:
    clusters.append(Object(ObjectMeta("first", "team-a", "uid-1")))
    labels = {**IDENTITY, "condition": "false"}
    assert registry.get_sample_value("kuberay_cluster_condition_provisioned", labels) == 1


def test_the_series_of_a_cluster_go_with_it(clusters: list[Object], registry: CollectorRegistry) -> None:
    clusters.append(a_cluster())
    clusters.clear()
    assert not [sample for family in registry.collect() for sample in family.samples]


def test_the_process_itself_is_told_of() -> None:
    names = {family.name for family in new_registry().collect()}
    assert {"process_resident_memory_bytes", "process_cpu_seconds", "python_info"} <= names


def test_a_scrape_decodes_only_what_changed_since_the_last_one(
    monkeypatch: pytest.MonkeyPatch, clusters: list[Object], registry: CollectorRegistry
) -> None:
    decoded: list[bytes] = []
    decode = metrics._decode_status

    def counting(status: bytes) -> metrics._Status:
        decoded.append(status)
        return decode(status)

    monkeypatch.setattr(metrics, "_decode_status", counting)
    clusters.append(a_cluster(provisioned("True")))
    label = {**IDENTITY, "condition": "true"}
    for _ in range(3):
        assert registry.get_sample_value("kuberay_cluster_condition_provisioned", label) == 1
    assert len(decoded) == 1
    clusters[0] = a_cluster(provisioned("False"))
    clusters[0].metadata.resource_version = "2"
    assert registry.get_sample_value("kuberay_cluster_condition_provisioned", {**IDENTITY, "condition": "false"}) == 1
    assert len(decoded) == 2
