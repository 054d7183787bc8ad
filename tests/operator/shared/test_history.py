"""Which clusters ask for history by an annotation, and what the operator's settings make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rayclusters.histories import (
    BY_ACK,
    IN_AZURE,
    IN_FOLDER,
    IN_S3,
    IN_S3_BY_ROLE,
    ON_ACK,
    OURS,
    STORES,
    WITH_PROVIDER,
    remembered,
)
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api import labels
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.history import Collector, History, asks_for_history, without_history
from raykeeper.operator.shared.spec_hash import spec_hash

OWN = {"collectorOptions": {"image": "mine:1", "env": [{"name": "STORAGE_BACKEND", "value": "s3"}]}}


def collector(cluster: ClusterBuilder, settings: HistorySettings) -> Collector | None:
    built = cluster.build()
    return History(settings).collector(built.spec, built.metadata.annotations)


@pytest.mark.parametrize(
    ("annotations", "is_asked"),
    [
        ({}, False),
        (BY_ACK, True),
        (OURS, True),
        ({labels.HISTORY: "True"}, True),
        ({labels.HISTORY: "yes"}, False),
        ({labels.HISTORY: "false"}, False),
        ({labels.HISTORY: "false", labels.ENABLE_HISTORYSERVER: "true"}, False),
        ({labels.HISTORY: "true", labels.ENABLE_HISTORYSERVER: "false"}, True),
    ],
)
def test_history_is_asked_for_by_either_annotation_and_ours_wins(annotations: dict[str, str], is_asked: bool) -> None:
    assert asks_for_history(annotations) is is_asked


@pytest.mark.parametrize("store", STORES)
def test_for_every_kind_of_store_there_are_settings_without_a_problem(store: str) -> None:
    assert History(STORES[store]).problem == ""
    assert collector(remembered(), STORES[store]) is not None
    assert collector(a_cluster(), STORES[store]) is None


@pytest.mark.parametrize(
    ("settings", "changed", "problem"),
    [
        (ON_ACK, {"collector_image": ""}, "--history-collector-image (chart: history.collector.image) is not set"),
        (ON_ACK, {"collector_image": "ray keeper"}, "is 'ray keeper': that is no name of an image"),
        (ON_ACK, {"collector_image_pull_policy": "always"}, "use Always, IfNotPresent or Never"),
        (
            ON_ACK,
            {"collector_resources": {"limits": {"cpu": "much"}}},
            "(chart: history.collector.resources) cannot be",
        ),
        (ON_ACK, {"collector_resources": {"limits": "1Gi"}}, "(chart: history.collector.resources) cannot be read"),
        (ON_ACK, {"collector_resources": {"limit": {"cpu": 1}}}, "has 'limit': it has limits and requests"),
        (
            ON_ACK,
            {"collector_resources": {"limits": {"cpu": "50m"}, "requests": {"cpu": "1"}}},
            "asks for 1 of cpu, which is above the limit 50m",
        ),
        (ON_ACK, {"env": ({"name": "A", "value": 1},)}, "has a A that is no text: put its value into quotes"),
        (IN_FOLDER, {"store_volume": {"nfs": {}, "hostPath": {}}}, "must be one source of a volume"),
        (ON_ACK, {"oss_bucket": ""}, "--oss-bucket (chart: history.OSSBucket) is not set"),
        (ON_ACK, {"oss_endpoint": "", "oss_region": ""}, "--oss-endpoint (chart: history.OSSEndPoint) is not set"),
        (ON_ACK, {"cloud_role_name": ""}, "--cloud-role-name (chart: history.CloudRoleName) is not set"),
        (ON_ACK, {"cloud_role_name": "acs:ram::1:role/x"}, "give the name of a RAM role, not its ARN"),
        (
            ON_ACK,
            {"service_account_prefix": "Ray_"},
            "--service-account-prefix (chart: history.ServiceAccountPrefix) is",
        ),
        (ON_ACK, {"store_url": "s3://b"}, "both say where the history goes: keep one"),
        (WITH_PROVIDER, {"oidc_provider_arn": "ack"}, "use acs:ram::ACCOUNT:oidc-provider/NAME"),
        (WITH_PROVIDER, {"cloud_role_name": "", "secret_name": "keys"}, "(chart: history.OIDCProviderARN) needs it"),
        (IN_S3, {"store_url": ""}, "no store is set: give --history-store-url (chart: history.store.url) or --oss"),
        (IN_S3, {"env": ({"name": "RAY_ROLE", "value": "x"},)}, "sets RAY_ROLE: remove it, the operator writes it"),
        (IN_S3_BY_ROLE, {"store_url": "minio/history"}, "--history-store-url (chart: history.store.url): storage URL="),
        (IN_S3_BY_ROLE, {"store_url": "gs://"}, "name the bucket: gs://bucket/prefix"),
        (IN_FOLDER, {"store_volume": None}, "--history-store-volume (chart: history.store.volume) is not set"),
        (
            IN_AZURE,
            {"env": ({"name": "STORAGE_BACKEND", "value": "azureblob"},)},
            "STORAGE_BACKEND in --history-env (chart: history.store.env): AZURE_STORAGE_CONNECTION_STRING",
        ),
        (
            IN_AZURE,
            {"env": ({"name": "STORAGE_BACKEND", "value": "floppy"},)},
            "STORAGE_BACKEND='floppy' cannot be used",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_cure(
    settings: HistorySettings, changed: dict[str, Any], problem: str
) -> None:
    history = History(replace(settings, **changed))
    assert problem in history.problem
    built = remembered().build()
    assert history.problem_of(built.spec, built.metadata.annotations) == history.problem
    assert history.collector(built.spec, built.metadata.annotations) is None
    assert history.account_name(built) is None
    assert history.with_collector(built.spec, built.metadata.annotations) == built.spec
    assert history.problem_of(built.spec, {}) == ""


def test_an_operator_without_settings_says_what_to_set_first() -> None:
    assert History().problem.startswith("--history-collector-image")


def test_keys_stand_in_for_a_role() -> None:
    assert History(replace(ON_ACK, cloud_role_name="", secret_name="keys")).problem == ""
    key = ({"name": "ALIBABA_CLOUD_ACCESS_KEY_ID", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},)
    assert History(replace(ON_ACK, cloud_role_name="", env=key)).problem == ""


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (ON_ACK, "ray-historyserver-rc"),
        (replace(ON_ACK, service_account_prefix="rhs"), "rhs-rc"),
        (IN_S3_BY_ROLE, "rhs-rc"),
        (replace(IN_S3_BY_ROLE, service_account_prefix=""), "ray-historyserver-rc"),
        (replace(IN_S3, service_account_prefix="rhs"), "rhs-rc"),
        (IN_S3, None),
    ],
)
def test_pods_get_a_service_account_where_there_is_an_identity_to_give(
    settings: HistorySettings, name: str | None
) -> None:
    assert History(settings).account_name(remembered().build()) == name
    assert History(settings).account_name(a_cluster().build()) is None


def test_the_name_of_the_account_is_not_cut() -> None:
    assert (
        History(ON_ACK).account_name(remembered(a_cluster().named("x" * 53)).build()) == f"ray-historyserver-{'x' * 53}"
    )


def test_secrets_that_are_missing_hold_up_no_pod() -> None:
    azure, s3 = collector(remembered(), IN_AZURE), collector(remembered(), IN_S3)
    assert azure is not None
    assert azure.env[-1]["valueFrom"] == {"secretKeyRef": {"name": "azure", "key": "connection", "optional": True}}
    assert s3 is not None
    assert s3.env_from == ({"secretRef": {"name": "ray-history", "optional": True}},)


def test_a_spec_that_describes_a_collector_wins_over_the_annotation() -> None:
    chosen = collector(remembered(a_cluster().with_spec(historyServerOptions=OWN)), ON_ACK)
    assert chosen is not None
    assert (chosen.image, chosen.is_annotated) == ("mine:1", False)
    built = remembered(a_cluster().with_spec(historyServerOptions=OWN)).build()
    assert History(ON_ACK).account_name(built) is None
    assert History().problem_of(built.spec, built.metadata.annotations) == ""


def test_neither_the_annotation_nor_the_settings_are_part_of_a_specs_hash() -> None:
    assert spec_hash(remembered().build().spec) == spec_hash(a_cluster().build().spec)


def test_schedulers_count_what_the_collector_asks_for() -> None:
    built = remembered().build()
    counted = History(IN_S3).with_collector(built.spec, built.metadata.annotations).history_server_options
    assert counted is not None
    assert counted.collector_options is not None
    assert counted.collector_options.resources == IN_S3.collector_resources


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", ""),
        ("localhost:8080", "http://localhost:8080/s/default/rc/latest/"),
        ("https://history.example.com/", "https://history.example.com/s/default/rc/latest/"),
    ],
)
def test_the_history_is_linked_where_people_reach_it(host: str, url: str) -> None:
    assert History(HistorySettings(callback_service_name=host)).url(*a_cluster().build().key) == url


def test_a_whole_address_of_the_history_wins_over_a_host() -> None:
    settings = HistorySettings(callback_service_name="localhost:8080", url="https://history.example.com/base")
    assert settings.server_url == "https://history.example.com/base"


def test_a_cluster_without_its_annotations_is_the_same_else() -> None:
    built = a_cluster().annotated({**BY_ACK, **OURS, "mine": "kept"}).build()
    bare = without_history(built)
    assert bare.metadata.annotations == {"mine": "kept"}
    assert bare.spec == built.spec
