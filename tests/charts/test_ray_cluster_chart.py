"""The chart `ray-cluster`: what its values mean to the RayCluster that it makes."""

from __future__ import annotations

from typing import Final

import pytest

from support.helm_charts import Chart, Json

CHART: Final = Chart("ray-cluster")


def cluster(documents: list[Json]) -> Json:
    (found,) = (item for item in documents if item["kind"] == "RayCluster")
    return found


def ray_container(group: Json) -> Json:
    return dict(group["template"]["spec"]["containers"][0])


def groups(spec: Json) -> list[Json]:
    return [spec["headGroupSpec"], *spec["workerGroupSpecs"]]


@pytest.mark.parametrize("case", ["team", "fault-tolerance"])
def test_a_limit_alone_is_the_request_too(case: str) -> None:
    spec = cluster(CHART.rendered(case))["spec"]
    resources = ray_container(spec["headGroupSpec"])["resources"]
    assert resources == {"limits": {"cpu": 2, "memory": "4Gi"}, "requests": {"cpu": 2, "memory": "4Gi"}}


def test_a_request_alone_is_the_limit_too() -> None:
    spec = cluster(CHART.rendered("only-requests"))["spec"]
    head, worker = (ray_container(group)["resources"] for group in groups(spec))
    assert head["limits"] == head["requests"] == {"cpu": "500m", "memory": "2Gi"}
    assert worker["limits"] == worker["requests"] == {"cpu": "250m", "memory": "1Gi"}


def test_a_limit_can_be_left_out() -> None:
    spec = cluster(CHART.rendered("no-cpu-limit"))["spec"]
    head, worker = (ray_container(group)["resources"] for group in groups(spec))
    assert head == {"limits": {"memory": "5Gi"}, "requests": {"cpu": "1", "memory": "5Gi"}}
    assert worker == {"requests": {"cpu": "1", "memory": "1Gi"}}


def test_both_spellings_of_the_runtime_class_mean_the_same() -> None:
    said, merged = (cluster(CHART.rendered(case))["spec"] for case in ("runtime-class", "runtime-class-in-template"))
    assert said == merged
    assert [group["template"]["spec"]["runtimeClassName"] for group in groups(said)] == ["nvidia"] * 3


def test_a_template_is_merged_by_name_into_what_the_values_make() -> None:
    spec = cluster(CHART.rendered("any-pod-field"))["spec"]["headGroupSpec"]["template"]["spec"]
    ray, extra = spec["containers"]
    assert (ray["name"], extra["name"]) == ("ray-head", "extra")
    assert ray["env"] == [{"name": "A", "value": "one"}, {"name": "B", "value": "two"}]
    assert [mount["mountPath"] for mount in ray["volumeMounts"]] == ["/tmp/ray", "/more"]
    assert spec["volumes"][0] == {"name": "log-volume", "emptyDir": {"sizeLimit": "5Gi"}}
    assert spec["terminationGracePeriodSeconds"] == 120


def test_the_spec_is_merged_last_and_takes_fields_of_the_future() -> None:
    spec = cluster(CHART.render({"spec": {"notYet": {"a": 1}, "headGroupSpec": {"serviceType": "NodePort"}}}))["spec"]
    assert spec["notYet"] == {"a": 1}
    assert spec["headGroupSpec"]["serviceType"] == "NodePort"
    (worker, second) = cluster(CHART.rendered("any-cluster-field"))["spec"]["workerGroupSpecs"]
    assert (worker["groupName"], worker["priority"], worker["replicas"]) == ("workergroup", 3, 1)
    assert second["groupName"] == "second"


def test_replicas_can_be_left_to_the_autoscaler() -> None:
    (worker,) = cluster(CHART.rendered("autoscaler"))["spec"]["workerGroupSpecs"]
    assert "replicas" not in worker


def test_large_numbers_stay_as_they_were_written() -> None:
    head = cluster(CHART.rendered("start-parameters"))["spec"]["headGroupSpec"]
    assert head["rayStartParams"] == {
        "block": "true",
        "dashboard-host": "0.0.0.0",
        "num-cpus": "0",
        "object-store-memory": "2147483648",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"worker": {"minReplicas": 9}}, "worker group workergroup: minReplicas 9 is above maxReplicas 5"),
        ({"gcsFaultTolerance": {"enabled": True}}, "gcsFaultTolerance.enabled needs gcsFaultTolerance.redisAddress"),
    ],
)
def test_contradictory_values_fail_with_the_cure(values: Json, message: str) -> None:
    assert message in CHART.refusal(values)


MISTAKES: Final[dict[str, tuple[Json, str]]] = {
    "replica": ({"worker": {"replica": 2}}, "worker.replica: there is no such value; did you mean worker.replicas?"),
    "case": ({"worker": {"runtimeclassName": "a"}}, "did you mean worker.runtimeClassName?"),
    "swap": ({"worker": {"repilcas": 2}}, "did you mean worker.replicas?"),
    "place": ({"rayVersion": "2.60.0"}, "rayVersion: there is no such value; did you mean head.rayVersion?"),
    "group": ({"additionalWorkerGroups": {"g": {"resource": {}}}}, "did you mean additionalWorkerGroups.g.resources?"),
    "pod": ({"head": {"template": {"spec": {"hostNetworking": True}}}}, "did you mean head.template.spec.hostNetwork?"),
    "container": (
        {"head": {"template": {"spec": {"containers": [{"name": "ray-head", "livenesProbe": {}}]}}}},
        "did you mean head.template.spec.containers[0].livenessProbe?",
    ),
    "limits": ({"head": {"resources": {"limit": {}}}}, "did you mean head.resources.limits?"),
    "unlike": ({"xyz": 1}, "xyz: there is no such value\n"),
    "type": ({"worker": {"replicas": "two"}}, "worker.replicas: Invalid type"),
    "list": ({"head": {"volumes": {"a": 1}}}, "head.volumes: Invalid type"),
    "version": ({"head": {"rayVersion": 2.6}}, "head.rayVersion: Invalid type"),
    "options": ({"head": {"autoscalerOptions": {"idleTimeout": 1}}}, "autoscalerOptions.idleTimeoutSeconds?"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_value_is_named_with_the_nearest_right_one(mistake: str) -> None:
    values, message = MISTAKES[mistake]
    assert message in CHART.refusal(values)


PORTS: Final[dict[str, tuple[list[Json], list[Json], list[Json]]]] = {
    "others": (
        [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
        [{"name": "c", "port": 3}, {"name": "d", "port": 4}],
        [{"name": "a", "port": 1}, {"name": "b", "port": 2}, {"name": "c", "port": 3}, {"name": "d", "port": 4}],
    ),
    "another number": (
        [{"name": "a", "port": 1, "targetPort": 7}, {"name": "b", "port": 2}],
        [{"name": "a", "port": 9}],
        [{"name": "a", "port": 9, "targetPort": 7}, {"name": "b", "port": 2}],
    ),
    "another name": ([{"name": "a", "port": 1}], [{"name": "z", "port": 1}], [{"name": "z", "port": 1}]),
    "another protocol": (
        [{"name": "dns", "port": 53}],
        [{"name": "dns-udp", "port": 53, "protocol": "UDP"}],
        [{"name": "dns", "port": 53}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}],
    ),
}
"""Ports of the values, ports merged into them, and what comes of it."""


@pytest.mark.parametrize("case", PORTS)
def test_ports_of_a_service_are_merged_by_their_name_or_number(case: str) -> None:
    given, merged, expected = PORTS[case]
    service = {"head": {"headService": {"spec": {"ports": given}}}}
    (cluster,) = CHART.render({**service, "spec": {"headGroupSpec": {"headService": {"spec": {"ports": merged}}}}})
    assert cluster["spec"]["headGroupSpec"]["headService"]["spec"]["ports"] == expected


def test_ports_of_a_container_are_merged_by_their_number_and_protocol() -> None:
    more = [{"containerPort": 8265, "name": "ui"}, {"containerPort": 8265, "name": "quic", "protocol": "UDP"}]
    ports = [{"containerPort": 8265, "name": "dashboard", "protocol": "TCP"}]
    template = {"spec": {"containers": [{"name": "ray-head", "ports": more}]}}
    (cluster,) = CHART.render({"head": {"ports": ports, "template": template}})
    (container,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 8265, "name": "ui", "protocol": "TCP"}, more[1]]


def test_every_unknown_value_is_named_at_once() -> None:
    text = CHART.refusal({"heads": {}, "worker": {"replica": 1}})
    assert "heads: there is no such value; did you mean head?" in text
    assert "worker.replica: there is no such value" in text


def test_the_chart_can_be_part_of_another() -> None:
    CHART.render({"global": {"a": 1}, "enabled": True})
