"""A feature is on when any of the ways to ask for it says so."""

from __future__ import annotations

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.podtemplates import containers, env_value, env_var, ray_container
from raykeeper.operator.shared import features


@pytest.mark.parametrize(
    ("cluster", "backend"),
    [
        (a_cluster(), None),
        (a_cluster().with_spec(gcsFaultToleranceOptions={}), "redis"),
        (a_cluster().with_spec(gcsFaultToleranceOptions={"backend": "rocksdb"}), "rocksdb"),
        (a_cluster().annotated({"ray.io/ft-enabled": "TRUE"}), "redis"),
        (a_cluster().annotated({"ray.io/ft-enabled": "false"}), None),
        (a_cluster().annotated({"ray.io/ft-enabled": "1"}), None),
    ],
)
def test_the_gcs_keeps_its_state_where_options_or_annotation_say(cluster: ClusterBuilder, backend: str | None) -> None:
    built = cluster.build()
    assert features.gcs_backend(built.spec, built.metadata.annotations) == backend


@pytest.mark.parametrize(
    ("cluster", "is_v2"),
    [
        (a_cluster(), False),
        (a_cluster().autoscaled(version="v1"), False),
        (a_cluster().autoscaled(version="v2"), True),
        (a_cluster().with_head_env("RAY_enable_autoscaler_v2", "1"), True),
        (a_cluster().with_head_env("RAY_enable_autoscaler_v2", "true"), True),
        (a_cluster().with_head_env("RAY_enable_autoscaler_v2", "True"), False),
    ],
)
def test_the_autoscaler_v2_is_asked_for_by_field_or_environment(cluster: ClusterBuilder, is_v2: bool) -> None:
    assert features.is_autoscaler_v2(cluster.build().spec) is is_v2


@pytest.mark.parametrize(("value", "needed"), [("true", True), ("True", False), ("", False)])
def test_a_serve_service_is_asked_for_by_exactly_true(value: str, needed: bool) -> None:
    assert features.needs_serve_service({"ray.io/enable-serve-service": value}) is needed


def test_one_multi_host_group_is_enough_for_the_service_between_workers() -> None:
    assert not features.needs_headless_worker_service(a_cluster().with_workers().build().spec)
    assert features.needs_headless_worker_service(
        a_cluster().with_workers("a").with_workers("b", numOfHosts=2).build().spec
    )


def test_missing_parts_of_a_template_count_as_empty() -> None:
    assert containers({}) == containers({"spec": None}) == containers({"spec": {"containers": None}}) == []
    assert ray_container({}) == {}
    assert env_var({}, "A") is None
    assert env_var({"env": None}, "A") is None


def test_of_two_variables_with_one_name_the_first_counts() -> None:
    container = {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    assert env_value(container, "A") == "1"


def test_a_variable_without_a_literal_value_is_there_but_has_none() -> None:
    container = {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "B"}]}
    assert env_var(container, "A") is not None
    assert env_value(container, "A") is None
    assert env_value(container, "B") is None
