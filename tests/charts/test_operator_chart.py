"""The chart `kuberay-operator`: what its values mean to the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from raykeeper.kube.crds import DowngradeRefused
from raykeeper.operator.flags import FLAGS
from raykeeper.operator.gates import Gate
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.history import History
from raykeeper.operator.sources import read_settings
from support.helm_charts import Chart, Json, the
from support.operator_rights import (
    OF_SCHEDULERS,
    ON_OPENSHIFT,
    RULES,
    THROUGH_THE_API_SERVER,
    WITH_GATEWAYS,
    Right,
    rights,
)

NAME: Final = "kuberay-operator"
CHART: Final = Chart(NAME)
CASES: Final[dict[str, Any]] = CHART.cases


def arguments(documents: list[Json]) -> list[str]:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    (container, *_) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def image(documents: list[Json]) -> str:
    return str(the(documents, "Deployment", NAME)["spec"]["template"]["spec"]["containers"][0]["image"])


def rules_of(role: Json) -> set[Right]:
    return {
        Right(group, kind, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_default_gates_are_those_of_the_operator() -> None:
    (flag,) = (item for item in arguments(CHART.rendered("defaults")) if item.startswith("--feature-gates="))
    said = dict(pair.split("=") for pair in flag.partition("=")[2].split(","))
    defaults = {gate.value.name: gate.value.is_on for gate in Gate}
    assert {name: value == "true" for name, value in said.items()} == {name: defaults[name] for name in said}


@pytest.mark.parametrize("case", CASES)
def test_the_operator_knows_every_flag(case: str) -> None:
    flags = [item for item in arguments(CHART.rendered(case)) if item.startswith("--")]
    given = {item.removeprefix("--").partition("=")[0] for item in flags}
    assert given <= {flag.name for flag in FLAGS}


USED: Final = rights((*RULES, ON_OPENSHIFT, WITH_GATEWAYS))
"""What the operator does, by the audit log of an API server."""
LEASES: Final = {right for right in USED if right.kind == "leases"}
IN_ITS_OWN_NAMESPACE: Final = {right for right in LEASES if right.verb != "list"}
"""By the Role for the election of a leader."""


def roles(case: str) -> dict[tuple[str, str], set[Right]]:
    """The operator's own roles, by namespace and name."""
    found = [item for item in CHART.rendered(case) if item["kind"] in ("ClusterRole", "Role")]
    ours = [item for item in found if item["metadata"]["name"].startswith(NAME) and "hook" not in str(item)]
    return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): rules_of(item) for item in ours}


@pytest.mark.parametrize("case", ["rbac-cluster", "watch-some-with-cluster-role"])
def test_a_cluster_role_holds_what_the_operator_does_and_nothing_else(case: str) -> None:
    assert roles(case) == {
        ("", NAME): USED - IN_ITS_OWN_NAMESPACE,
        ("default", f"{NAME}-leader-election"): IN_ITS_OWN_NAMESPACE,
    }


@pytest.mark.parametrize(
    ("case", "namespaces"), [("rbac-namespaces", ("ray-ns1", "ray-ns2")), ("rbac-own-namespace", ("ray-system",))]
)
def test_a_role_in_a_namespace_holds_what_the_operator_does_there_and_nothing_else(
    case: str, namespaces: tuple[str, ...]
) -> None:
    there = (USED - LEASES) | {Right("coordination.k8s.io", "leases", "get")}
    assert roles(case) == {
        **{(namespace, NAME): there for namespace in namespaces},
        ("ray-system", f"{NAME}-leader-election"): IN_ITS_OWN_NAMESPACE,
    }


KUBERAYS_SUITE_ASKS_FOR: Final = {
    "kubernetes-was": {Right("scheduling.k8s.io", kind, "patch") for kind in ("podgroups", "workloads")}
}
"""Reviewed: rights that we do not use, in rules that KubeRay's own helm-unittest suite compares word by word."""


def test_roles_that_others_make_are_not_made() -> None:
    assert roles("rbac-elsewhere") == {("default", f"{NAME}-leader-election"): IN_ITS_OWN_NAMESPACE}
    assert roles("rbac-off") == {}


def test_the_way_through_the_api_server_needs_rights_of_its_own() -> None:
    role = roles("configuration")["", NAME]
    assert role - USED == rights(THROUGH_THE_API_SERVER)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("gpu", "volcano"),
        ("rbac-namespaces-volcano", "volcano"),
        ("scheduler-legacy", "volcano"),
        ("tenants", "yunikorn"),
        ("scheduler-plugins", "scheduler-plugins"),
        ("scheduler-kai", "kai-scheduler"),
        ("gate-kubernetes-was", "kubernetes-was"),
        ("rbac-namespaces-plugins", "scheduler-plugins"),
        ("rbac-namespaces-was", "kubernetes-was"),
    ],
)
def test_a_batch_scheduler_is_chosen_and_its_objects_can_be_kept(case: str, name: str) -> None:
    documents = CHART.rendered(case)
    assert read_settings(arguments(documents), {}).batch_scheduler == name
    workers = [role for role in roles(case).values() if Right("", "pods", "create") in role]
    assert workers
    for role in workers:
        assert role - USED == rights(OF_SCHEDULERS[name]) | KUBERAYS_SUITE_ASKS_FOR.get(name, set())


def test_history_is_set_by_the_names_of_alibabas_documentation() -> None:
    history = read_settings(arguments(CHART.rendered("history-in-oss")), {}).history
    assert History(history).problem == ""
    assert history == HistorySettings(
        collector_image=image(CHART.rendered("history-in-oss")),
        service_account_prefix="rhs",
        callback_service_name="localhost:8080",
        cloud_role_name="ray-history",
        oidc_provider_arn="acs:ram::1234567890:oidc-provider/ack-rrsa-c1",
        oss_bucket="history",
        oss_endpoint="oss-cn-hangzhou-internal.aliyuncs.com",
        oss_region="cn-hangzhou",
        oss_root_dir="ray/log",
    )


def test_history_is_set_for_any_store() -> None:
    history = read_settings(arguments(CHART.rendered("history-in-s3")), {}).history
    assert History(history).problem == ""
    assert history.collector_image == "registry.example.com/raykeeper:1"
    assert history.collector_resources == {"limits": {"memory": "300Mi"}}
    assert {one["name"]: one["value"] for one in history.env} == {
        "S3FORCE_PATH_STYLE": "true",
        "S3_ENDPOINT": "http://minio:9000",
        "S3_PORT": "4000000",
        "STORAGE_BACKEND": "s3",
        "STORAGE_ROOT_DIR": "ray",
    }
    assert history.service_account_annotations == {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/history"}


def test_history_is_set_in_the_configuration_file_too(tmp_path: Path) -> None:
    documents = CHART.rendered("history-in-configuration")
    file = tmp_path / "config.yaml"
    file.write_text(the(documents, "ConfigMap", f"{NAME}-config")["data"]["config.yaml"])
    history = read_settings([f"--config={file}"], {}).history
    assert History(history).problem == ""
    assert history.store_volume == {"nfs": {"server": "nas", "path": "/history"}}
    assert history.env == ({"name": "A", "value": 'it\'s "quoted"'},)
    assert not any("history" in argument for argument in arguments(documents))


@pytest.mark.parametrize("case", CASES)
def test_in_every_mode_of_roles_the_operator_may_keep_service_accounts(case: str) -> None:
    needed = {Right("", "serviceaccounts", verb) for verb in ("get", "list", "watch", "create", "patch")}
    roles = [item for item in CHART.rendered(case) if item["kind"] in ("ClusterRole", "Role")]
    workers = [role for role in roles if Right("", "pods", "create") in rules_of(role)]
    assert all(needed <= rules_of(role) for role in workers)


def test_no_cluster_role_is_made_for_single_namespaces() -> None:
    for case in ("rbac-namespaces", "rbac-own-namespace", "rbac-elsewhere", "teams", "tenants"):
        assert not any(item["kind"].startswith("ClusterRole") for item in CHART.rendered(case)), case


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batchScheduler": {"enabled": True, "name": "yunikorn"}}, "leave it out beside name: yunikorn"),
        (
            {"batchScheduler": {"name": "kai-scheduler"}, "featureGates": [{"name": "KubernetesWAS", "enabled": True}]},
            "featureGates: KubernetesWAS is a scheduler too; leave out batchScheduler, or the gate",
        ),
        ({"replicas": 2, "leaderElectionEnabled": False}, "replicas: 2 needs leaderElectionEnabled: true"),
        ({"reconcileConcurrency": 0}, "reconcileConcurrency must be a positive integer, not 0"),
        ({"kubeClient": {"qps": -1}}, "kubeClient.qps must be a number that is not negative, not -1"),
        ({"kubeClient": {"burst": 1.5}}, "kubeClient.burst must be an integer that is not negative, not 1.5"),
    ],
)
def test_contradictory_values_fail_with_the_cure(values: Json, message: str) -> None:
    assert message in CHART.refusal(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replica": 2}, "replica: there is no such value; did you mean replicas?"),
        (
            {"image": {"pullpolicy": "Always"}},
            "image.pullpolicy: there is no such value; did you mean image.pullPolicy?",
        ),
        (
            {"resources": {"limit": {"cpu": 1}}},
            "resources.limit: there is no such value; did you mean resources.limits?",
        ),
        (
            {"tolerations": [{"keys": "a"}]},
            "tolerations[0].keys: there is no such value; did you mean tolerations[0].key?",
        ),
        ({"rbacEnable": "yes"}, "rbacEnable: Invalid type"),
        ({"watchNamespace": "a,b"}, "watchNamespace: Invalid type"),
        ({"batchScheduler": {"name": "default"}}, "batchScheduler.name must be one of"),
        ({"featureGates": [{"name": "RayCronJob"}]}, "featureGates.0: enabled is required"),
    ],
)
def test_a_wrong_value_is_named(values: Json, message: str) -> None:
    assert message in CHART.refusal(values)


def test_numbers_are_quantities_too() -> None:
    CHART.render({"resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}}, "global": {"a": 1}})


def test_a_probe_can_be_left_out() -> None:
    documents = CHART.render({"livenessProbe": None})
    (container,) = the(documents, "Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    assert "livenessProbe" not in container
    assert "readinessProbe" in container


def test_an_upgrade_brings_the_crds_up_to_date() -> None:
    job = the(CHART.rendered("defaults"), "Job", f"{NAME}-crds")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["raykeeper", "crds", "--apply"]
    (stop,) = job["spec"]["podFailurePolicy"]["rules"]
    assert stop["onExitCodes"]["values"] == [DowngradeRefused.exit_code], "trying again would not help"
    role = the(CHART.rendered("defaults"), "ClusterRole", f"{NAME}-crds")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"create", "get", "patch"}


def test_crds_are_deleted_with_the_release_only_where_that_is_wanted() -> None:
    job = the(CHART.rendered("crds-not-kept"), "Job", f"{NAME}-crds-delete")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    role = the(CHART.rendered("crds-not-kept"), "ClusterRole", f"{NAME}-crds-delete")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"delete", "get"}
    for case in CASES:
        if case != "crds-not-kept":
            assert not any(item["metadata"]["name"].endswith("-delete") for item in CHART.rendered(case)), case


@pytest.mark.parametrize("case", ["no-crds", "rbac-off", "rbac-own-namespace"])
def test_without_a_cluster_role_the_crds_are_left_alone(case: str) -> None:
    assert not any(item["metadata"]["name"].endswith("-crds") for item in CHART.rendered(case))
