"""Derived names are KubeRay's, and valid whatever the cluster is called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayclusters.manifests import a_cluster
from raykeeper.api import labels, names
from raykeeper.api.syntax import is_dns_1035_label, is_dns_1123_label, is_dns_1123_subdomain, is_label_value

CLUSTER_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,51}[a-z0-9])?", fullmatch=True)
GROUP_NAMES = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?", fullmatch=True)
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)

SERVICE_NAMES = (
    names.head_service_name,
    names.headless_worker_service_name,
    names.serve_service_name,
)
OTHER_NAMES = (
    names.head_ingress_name,
    names.head_route_name,
    names.autoscaler_service_account_name,
    names.autoscaler_role_name,
    names.auth_secret_name,
    names.gcs_storage_claim_name,
    names.redis_cleanup_job_name,
)


@pytest.mark.parametrize(
    ("name", "clipped"),
    [
        ("raycluster", "raycluster"),
        ("a" * 50, "a" * 50),
        ("b" + "a" * 50, "a" * 50),
        ("x-" + "a" * 49, "r" + "a" * 49),
        ("x1" + "a" * 49, "r" + "a" * 49),
        ("9lives", "rlives"),
    ],
)
def test_a_clipped_name_is_the_last_50_characters_with_a_letter_first(name: str, clipped: str) -> None:
    assert names.clip_name(name) == clipped


@pytest.mark.parametrize(
    ("value", "clipped"),
    [
        ("a" * 63, "a" * 63),
        ("b" + "a" * 63, "a" * 63),
        ("x-" + "a" * 62, "r" + "a" * 62),
        ("x1" + "a" * 62, "1" + "a" * 62),
    ],
)
def test_a_clipped_label_is_the_last_63_characters_and_may_start_with_a_digit(value: str, clipped: str) -> None:
    assert names.clip_label(value) == clipped


def test_the_names_of_a_short_cluster_are_those_of_kuberay() -> None:
    cluster = a_cluster().named("rc", namespace="ml").build()
    assert names.head_service_name(cluster) == "rc-head-svc"
    assert names.head_service_fqdn(cluster, "cluster.local") == "rc-head-svc.ml.svc.cluster.local"
    assert names.headless_worker_service_name(cluster) == "rc-headless"
    assert names.serve_service_name(cluster) == "rc-serve-svc"
    assert names.serve_label_value(cluster) == "rc-serve"
    assert names.head_ingress_name(cluster) == "rc-head-ingress"
    assert names.head_route_name(cluster) == "rc-head-route"
    assert names.autoscaler_service_account_name(cluster) == "rc"
    assert names.autoscaler_role_name(cluster) == "rc"
    assert names.auth_secret_name(cluster) == "rc"
    assert names.gcs_storage_claim_name(cluster) == "rc-gcs-pvc"
    assert names.redis_cleanup_job_name(cluster) == "rc-redis-cleanup"
    assert names.identifier(cluster, labels.HEAD) == "rc-head"
    assert names.head_pod_prefix(cluster) == "rc-head-"
    assert names.worker_pod_prefix(cluster, "GPU") == "rc-gpu-worker-"


def test_a_serve_service_has_its_name_in_full_however_long_the_clusters_is() -> None:
    longest = "x" * names.MAX_RAYCLUSTER_NAME_LENGTH
    assert names.serve_service_name(a_cluster().named(longest).build()) == f"{longest}-serve-svc"


def test_names_that_users_choose_are_taken_in_full() -> None:
    chosen = "a-service-account-whose-name-is-longer-than-fifty-characters"
    cluster = (
        a_cluster()
        .with_head(headService={"metadata": {"name": "my-head"}})
        .with_head_pod(serviceAccountName=chosen)
        .with_spec(
            authOptions={"mode": "token", "secretName": "my-token"},
            gcsFaultToleranceOptions={"backend": "rocksdb", "storage": {"claimName": "my-claim"}},
        )
        .build()
    )
    assert names.head_service_name(cluster) == "my-head"
    assert names.autoscaler_service_account_name(cluster) == chosen
    assert names.auth_secret_name(cluster) == "my-token"
    assert names.gcs_storage_claim_name(cluster) == "my-claim"


def test_a_route_name_leaves_room_for_the_namespace_and_never_ends_in_a_dash() -> None:
    cluster = a_cluster().named("my-cluster", namespace="n" * 40).build()
    assert names.head_route_name(cluster) == "my-cluster"


@given(CLUSTER_NAMES, NAMESPACES)
def test_every_derived_name_is_valid(name: str, namespace: str) -> None:
    cluster = a_cluster().named(name, namespace).build()
    assert all(is_dns_1035_label(derive(cluster)) for derive in SERVICE_NAMES)
    assert all(is_dns_1123_label(derive(cluster)) for derive in OTHER_NAMES)
    assert is_label_value(names.serve_label_value(cluster))
    assert is_dns_1123_subdomain(names.head_service_fqdn(cluster, "cluster.local"))


@given(CLUSTER_NAMES, st.sampled_from([labels.HEAD, labels.WORKER, labels.REDIS_CLEANUP]))
def test_every_identifier_is_a_label_value(name: str, node_type: str) -> None:
    assert is_label_value(names.identifier(a_cluster().named(name).build(), node_type))


@given(CLUSTER_NAMES, GROUP_NAMES)
def test_every_pod_name_is_a_dns_label(name: str, group_name: str) -> None:
    cluster = a_cluster().named(name).build()
    for prefix in (names.head_pod_prefix(cluster), names.worker_pod_prefix(cluster, group_name)):
        assert is_dns_1123_label(prefix + names.SAFE_ALPHABET[:5])


def test_the_random_alphabet_has_no_vowels_and_nothing_misread() -> None:
    assert re.fullmatch(r"[b-df-hj-np-tv-xz24-9]+", names.SAFE_ALPHABET)
