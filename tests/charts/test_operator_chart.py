"""The chart `kuberay-operator`: what its values mean to the operator."""

from __future__ import annotations

from typing import Any, Final

import pytest

from raykeeper.operator.flags import FLAGS
from raykeeper.operator.gates import Gate
from raykeeper.operator.sources import read_settings
from support.helm_charts import Chart, Json, the
from support.operator_rights import OF_SCHEDULERS, ON_OPENSHIFT, RULES, Right, rights

NAME: Final = "kuberay-operator"
CHART: Final = Chart(NAME)
CASES: Final[dict[str, Any]] = CHART.cases


def arguments(documents: list[Json]) -> list[str]:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    (container, *_) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


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


def test_the_operator_may_do_all_that_it_does() -> None:
    used = rights((*RULES, ON_OPENSHIFT))
    assert used <= rules_of(the(CHART.rendered("rbac-cluster"), "ClusterRole", NAME))
    roles = [item for item in CHART.rendered("rbac-namespaces") if item["kind"] == "Role"]
    watched = {item["metadata"]["namespace"]: rules_of(item) for item in roles}
    assert used <= watched["ray-ns1"]
    assert used <= watched["ray-ns2"]


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
    needed = rights(OF_SCHEDULERS[name])
    roles = [item for item in documents if item["kind"] in ("ClusterRole", "Role") and "rayclusters" in str(item)]
    workers = [role for role in roles if Right("", "pods", "create") in rules_of(role)]
    assert workers
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
    role = the(CHART.rendered("defaults"), "ClusterRole", f"{NAME}-crds")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"create", "get", "patch"}


@pytest.mark.parametrize("case", ["no-crd-upgrade", "rbac-off", "rbac-own-namespace"])
def test_without_a_cluster_role_the_crds_are_left_alone(case: str) -> None:
    assert not any(item["metadata"]["name"].endswith("-crds") for item in CHART.rendered(case))
