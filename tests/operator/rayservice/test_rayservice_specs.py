"""Specs of RayServices: which are refused, how one is recognised again, and what is made of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectMeta
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.gates import FeatureGates
from raykeeper.operator.rayservice.cluster import appending_patch, desired_cluster
from raykeeper.operator.rayservice.metrics import RayServiceCollector
from raykeeper.operator.rayservice.serve_config import parse_serve_config
from raykeeper.operator.rayservice.services import desired_head, desired_serve
from raykeeper.operator.rayservice.validation import violations
from raykeeper.operator.rayservice.versions import Marks, Match, adopted_marks, match
from support.rayservice_facts import CONFIG, GROUP, SERVE_CONFIG, TEMPLATE, a_service, a_spec

VERSION = "raykeeper-1"
OTHER = {"groupName": "large", "replicas": 2, "template": TEMPLATE}


def refusals(name: str = "web", annotations: JSON | None = None, **spec: Any) -> list[str]:
    service = a_service(annotations=annotations, **spec)
    service = msgspec.structs.replace(service, metadata=ObjectMeta(name=name, annotations=annotations or {}))
    return [str(violation) for violation in violations(service, FeatureGates())]


def test_a_plain_service_is_fine() -> None:
    assert refusals() == []
    assert refusals(annotations={"ray.io/initializing-timeout": ""}) == []
    assert refusals(serveConfigV2="") == []


def head_with(**template: Any) -> JSON:
    container = {**TEMPLATE["spec"]["containers"][0], **template}
    return {"rayClusterConfig": CONFIG | {"headGroupSpec": {"template": {"spec": {"containers": [container]}}}}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": "x" * 48}, "metadata.name"),
        ({"name": "1web"}, "metadata.name"),
        ({"annotations": {"ray.io/initializing-timeout": "soon"}}, "ray.io/initializing-timeout"),
        ({"annotations": {"ray.io/initializing-timeout": "0"}}, "ray.io/initializing-timeout"),
        ({"annotations": {"raykeeper.io/replace-unhealthy-after": "-5m"}}, "raykeeper.io/replace-unhealthy-after"),
        ({"serveConfigV2": "a: ["}, "spec.serveConfigV2 cannot be used: it is no YAML"),
        ({"serveConfigV2": "- a"}, "spec.serveConfigV2 cannot be used: it is no YAML mapping"),
        ({"serveConfigV2": "applications: shop"}, "spec.serveConfigV2 cannot be used: it is no config of Ray Serve"),
        ({"serveConfigV2": "applications: [{name: shop}]"}, "import_path"),
        ({"upgradeStrategy": {"type": "Rolling"}}, "spec.upgradeStrategy.type"),
        ({"upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade"}}, "clusterUpgradeOptions is missing"),
        ({"rayClusterConfig": CONFIG | {"upgradeStrategy": {"type": "Recreate"}}}, "rayClusterConfig.upgradeStrategy"),
        (head_with(ports=[{"name": "dashboard", "containerPort": 8265}]), "has no port named serve"),
        ({"serveService": {"spec": {"ports": [{"name": "serve"}]}}}, "spec.serveService.spec.ports[0].port"),
        ({"serveService": {"spec": {"ports": [{"port": 70000}]}}}, "spec.serveService.spec.ports[0].port is 70000"),
        ({"serveService": {"spec": {"ports": [{"port": 0}]}}}, "spec.serveService.spec.ports[0].port is 0"),
        ({"serveService": {"metadata": {"name": "web-head-svc"}}}, 'serveService.metadata.name is "web-head-svc"'),
        ({"serveService": {"metadata": {"name": "Bad_Name"}}}, 'serveService.metadata.name is "Bad_Name"'),
        ({"serveService": {"metadata": {"name": "a" * 64}}}, "serveService.metadata.name is"),
        ({"annotations": {labels.INITIALIZING_TIMEOUT: "99999999999"}}, "at most ten years"),
        ({"annotations": {"raykeeper.io/replace-unhealthy-after": "99999999999h"}}, "at most ten years"),
        (
            {
                "rayClusterConfig": CONFIG
                | {"headGroupSpec": {"template": TEMPLATE, "headService": {"metadata": {"name": "mine"}}}}
            },
            "headService.metadata.name",
        ),
        ({"rayClusterConfig": CONFIG | {"workerGroupSpecs": [GROUP, GROUP]}}, "spec.rayClusterConfig.workerGroupSpecs"),
    ],
)
def test_what_cannot_be_worked_on_is_refused_by_name(given: JSON, expected: str) -> None:
    assert any(expected in refusal for refusal in refusals(**given)), refusals(**given)


def test_a_config_is_the_same_by_its_content() -> None:
    config = parse_serve_config(SERVE_CONFIG)
    other = parse_serve_config("# comment\napplications: [{import_path: 'model:app', name: shop}]\n")
    assert config == other
    assert config.mark("uid/0") != config.mark("uid/1"), "a head that was started anew may have lost it"
    assert parse_serve_config(SERVE_CONFIG.replace("shop", "search")).hash != config.hash


def marks_of(**changes: Any) -> dict[str, str]:
    return Marks.for_spec(a_spec(**changes), VERSION).annotations()


@pytest.mark.parametrize(
    ("made_for", "expected"),
    [
        ({}, Match.SAME),
        ({"workerGroupSpecs": [GROUP | {"replicas": 5, "maxReplicas": 9}]}, Match.SAME),
        ({"suspend": True}, Match.SAME),
        ({"workerGroupSpecs": []}, Match.APPENDED),
        ({"workerGroupSpecs": [GROUP, OTHER]}, Match.DIFFERENT),
        ({"workerGroupSpecs": [OTHER]}, Match.DIFFERENT),
        ({"rayVersion": "2.61.0"}, Match.DIFFERENT),
    ],
)
def test_a_cluster_is_recognised_by_its_marks(made_for: JSON, expected: Match) -> None:
    assert match(marks_of(**made_for), a_spec(), VERSION) is expected


@pytest.mark.parametrize(
    "changed",
    [
        {labels.KUBERAY_VERSION: "v1.6.2"},
        {labels.KUBERAY_VERSION: "raykeeper-2"},
        {labels.NUM_WORKER_GROUPS: "many"},
        {labels.NUM_WORKER_GROUPS: "9" * 5000},
        {labels.HASH_WITHOUT_REPLICAS: ""},
    ],
)
def test_marks_of_another_version_say_nothing(changed: dict[str, str]) -> None:
    assert match({**marks_of(), **changed}, a_spec(), VERSION) is Match.UNKNOWN
    assert match({}, a_spec(), VERSION) is Match.UNKNOWN


def test_a_change_made_while_operators_were_swapped_is_not_lost() -> None:
    stored, goal = a_spec(rayVersion="2.59.0"), a_spec()
    trusted = adopted_marks(stored, goal, VERSION, was_seen=True)
    assert match(trusted.annotations(), goal, VERSION) is Match.SAME
    unseen = adopted_marks(stored, goal, VERSION, was_seen=False)
    assert match(unseen.annotations(), goal, VERSION) is Match.DIFFERENT
    same = adopted_marks(goal, goal, VERSION, was_seen=False)
    assert match(same.annotations(), goal, VERSION) is Match.SAME


def test_a_cluster_carries_the_labels_and_annotations_of_its_service() -> None:
    service = a_service(annotations={"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
    made = desired_cluster(service, "web-abcde", CONFIG | {"unknown": 1}, Marks("h", 1, VERSION))
    assert made["metadata"]["labels"][labels.ORIGINATED_FROM_CRD] == "RayService"
    assert made["metadata"]["annotations"] == {"team": "a", **Marks("h", 1, VERSION).annotations()}
    assert made["spec"]["unknown"] == 1


def test_appended_groups_leave_the_others_as_the_autoscaler_left_them() -> None:
    stored = {"workerGroupSpecs": [GROUP | {"replicas": 7}]}
    patch = appending_patch(stored, {"workerGroupSpecs": [GROUP, OTHER]}, Marks("h", 2, VERSION), "17")
    assert [group["replicas"] for group in patch["spec"]["workerGroupSpecs"]] == [7, 2]
    assert patch["metadata"]["resourceVersion"] == "17"


def the_cluster(**changes: Any) -> RayCluster:
    return RayCluster(ObjectMeta(name="web-abcde", namespace="ns"), a_spec(**changes))


def test_both_services_lead_to_the_cluster_that_serves() -> None:
    head = desired_head(a_service(), the_cluster(), headless=True)
    serve = desired_serve(a_service(), the_cluster())
    assert (head["metadata"]["name"], serve["metadata"]["name"]) == ("web-head-svc", "web-serve-svc")
    assert serve["spec"]["selector"] == {"ray.io/cluster": "web-abcde", "ray.io/serve": "true"}
    assert serve["spec"]["ports"] == [{"name": "serve", "port": 8000}]
    assert serve["metadata"]["labels"]["ray.io/serve"] == "web-serve"


def test_the_users_service_keeps_what_he_wrote_but_the_selector() -> None:
    users = {
        "metadata": {"name": "shop", "annotations": {"a": "b"}, "labels": {"ray.io/serve": "x", "team": "a"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 9000}, {"name": "x", "port": 1}]},
    }
    made = desired_serve(a_service(serveService=users), the_cluster())
    assert made["metadata"]["name"] == "shop"
    assert made["metadata"]["labels"]["ray.io/serve"] == "web-serve"
    assert made["metadata"]["labels"]["team"] == "a"
    assert made["spec"]["type"] == "LoadBalancer"
    assert made["spec"]["selector"] == {"ray.io/cluster": "web-abcde", "ray.io/serve": "true"}
    assert [port["port"] for port in made["spec"]["ports"]] == [9000, 1, 8000]


def test_metrics_have_kuberays_names() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "UpgradeInProgress", "status": "Unknown"}]
    status = msgspec.Raw(msgspec.json.encode({"conditions": conditions}))
    identity = {"name": "web", "namespace": "ns", "uid": "u"}
    registry = CollectorRegistry()
    registry.register(RayServiceCollector([Object(ObjectMeta("web", "ns", "u"), status=status)]))
    assert registry.get_sample_value("kuberay_service_info", identity) == 1
    ready = {**identity, "condition": "true"}
    assert registry.get_sample_value("kuberay_service_condition_ready", ready) == 1
    upgrading = {**identity, "condition": "false"}
    assert registry.get_sample_value("kuberay_service_condition_upgrade_in_progress", upgrading) == 1
