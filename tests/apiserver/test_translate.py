"""Messages into Kubernetes objects and back, beside what KubeRay's API server made of the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from google.protobuf.message import Message

from raykeeper.apiserver.errors import Untranslatable
from raykeeper.apiserver.protos.cluster_pb2 import Cluster
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate
from raykeeper.apiserver.protos.job_pb2 import RayJob
from raykeeper.apiserver.protos.job_submission_pb2 import RayJobSubmission
from raykeeper.apiserver.protos.serve_pb2 import RayService
from raykeeper.apiserver.translate.clusters import from_ray_cluster, to_ray_cluster
from raykeeper.apiserver.translate.jobs import from_ray_job, to_ray_job
from raykeeper.apiserver.translate.metadata import CREATION_TIMESTAMP
from raykeeper.apiserver.translate.services import from_ray_service, to_ray_service
from raykeeper.apiserver.translate.structs import merged
from raykeeper.apiserver.translate.submissions import go_text, to_submission
from raykeeper.apiserver.translate.templates import from_config_map, to_config_map, to_resources
from support.api_scenarios import ANSWERS, SCENARIOS, comparable_object

NAMESPACE = "NAMESPACE"


def requests(scenario: str) -> dict[str, Any]:
    text = (SCENARIOS / f"{scenario}.yaml").read_text().replace("$namespace", NAMESPACE)
    return {step["step"]: step.get("request") for step in yaml.safe_load(text)}


def recorded(scenario: str) -> dict[str, Any]:
    answers: dict[str, Any] = yaml.safe_load((ANSWERS / f"{scenario}.grpc.yaml").read_text())
    return answers


def templates(scenario: str) -> dict[str, ComputeTemplate]:
    found = [
        request["computeTemplate"] for request in requests(scenario).values() if "computeTemplate" in (request or ())
    ]
    return {fields["name"]: as_stored(parsed(ComputeTemplate(), fields)) for fields in found}


def as_stored(template: ComputeTemplate) -> ComputeTemplate:
    return from_config_map(to_config_map(template))


def parsed(message: Any, fields: dict[str, Any]) -> Any:
    return json_format.ParseDict(fields, message)


def told(message: Message) -> dict[str, Any]:
    fields = json_format.MessageToDict(message, use_integers_for_enums=True)
    fields.pop("createdAt")
    return {name: value for name, value in fields.items() if name != "deleteAt"}


CLUSTERS = [
    ("the smallest cluster", "the RayCluster of the smallest cluster"),
    ("a cluster with everything", "the RayCluster with everything"),
    ("an autoscaler with half of its amounts", "the RayCluster with half of the amounts"),
]
JOBS = [
    ("a job with a cluster of its own", "the RayJob with a cluster of its own"),
    ("a job on a cluster that is there", "the RayJob on a cluster that is there"),
]


def without_defaults(made: dict[str, Any]) -> dict[str, Any]:
    """An object that Kubernetes stored, without what its CRD filled in."""
    spec = made["spec"]
    for name in ("backoffLimit", "submissionMode", "suspend"):
        spec.pop(name, None)
    for cluster in (spec, spec.get("rayClusterSpec") or {}, spec.get("rayClusterConfig") or {}):
        heads = [cluster["headGroupSpec"]] if "headGroupSpec" in cluster else []
        for group in (*heads, *cluster.get("workerGroupSpecs", ())):
            group.pop("numOfHosts", None)
            group.pop("priority", None)
            for port in group["template"]["spec"]["containers"][0]["ports"]:
                del port["protocol"]
    return made


@pytest.mark.parametrize(("asked", "made"), CLUSTERS)
def test_a_cluster_becomes_the_object_that_kuberay_makes_of_it(asked: str, made: str) -> None:
    cluster = parsed(Cluster(), requests("clusters")[asked]["cluster"])
    ours = to_ray_cluster(cluster, templates("clusters"), "TIME")
    assert comparable_object(ours) == without_defaults(recorded("clusters")[made])


@pytest.mark.parametrize(("asked", "made"), CLUSTERS)
def test_a_raycluster_is_told_as_kuberay_tells_it(asked: str, made: str) -> None:
    answer = told(from_ray_cluster(recorded("clusters")[made], ()))
    for group in (answer["clusterSpec"]["headGroupSpec"], *answer["clusterSpec"].get("workerGroupSpec", ())):
        group.pop("tolerations", None)
    theirs = recorded("clusters")[asked]["answer"]
    theirs.pop("createdAt")
    assert answer == theirs


@pytest.mark.parametrize(("asked", "made"), JOBS)
def test_a_job_becomes_the_object_that_kuberay_makes_of_it(asked: str, made: str) -> None:
    job = parsed(RayJob(), requests("jobs")[asked]["job"])
    assert comparable_object(to_ray_job(job, templates("jobs"))) == without_defaults(recorded("jobs")[made])


def test_a_service_becomes_the_object_that_kuberay_makes_of_it() -> None:
    service = parsed(RayService(), requests("services")["a service"]["service"])
    ours = to_ray_service(service, templates("services"), {CREATION_TIMESTAMP: "TIME"})
    assert comparable_object(ours) == without_defaults(recorded("services")["the RayService"])


def test_a_template_becomes_the_config_map_that_kuberay_makes_of_it() -> None:
    template = parsed(
        ComputeTemplate(), requests("compute_templates")["a template with everything is made"]["computeTemplate"]
    )
    made = {"apiVersion": "v1", "kind": "ConfigMap", **to_config_map(template)}
    assert made == recorded("compute_templates")["the ConfigMap with everything"]


def a_head(**fields: Any) -> dict[str, Any]:
    return {"computeTemplate": "t", "rayStartParams": {"a": "b"}, **fields}


def a_cluster(spec: dict[str, Any], **fields: Any) -> Cluster:
    made: Cluster = parsed(Cluster(), {"name": "c", "namespace": "n", "user": "u", "clusterSpec": spec, **fields})
    return made


def a_template(**fields: Any) -> ComputeTemplate:
    return as_stored(parsed(ComputeTemplate(), {"name": "t", "namespace": "n", "cpu": 1, "memory": 2, **fields}))


def test_fields_of_ours_reach_the_cluster_and_are_told_back() -> None:
    affinity: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    }
    group = {
        "groupName": "g",
        "computeTemplate": "t",
        "maxReplicas": 2,
        "numOfHosts": 4,
        "idleTimeoutSeconds": 30,
        "suspend": True,
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": affinity,
    }
    cluster = a_cluster(
        {"headGroupSpec": a_head(), "workerGroupSpec": [group], "suspend": False}, labels={"team": "ray"}
    )
    made = to_ray_cluster(cluster, {"t": a_template(nodeSelector={"zone": "a"})}, "TIME")
    spec = made["spec"]
    worker = spec["workerGroupSpecs"][0]
    assert made["metadata"]["labels"]["team"] == "ray"
    assert spec["suspend"] is False
    assert (worker["numOfHosts"], worker["idleTimeoutSeconds"], worker["suspend"]) == (4, 30, True)
    assert worker["template"]["spec"]["nodeSelector"] == {"zone": "a", "disk": "fast"}
    assert worker["template"]["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert worker["template"]["spec"]["affinity"] == affinity
    assert spec["headGroupSpec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}
    again = from_ray_cluster(made, ())
    assert dict(again.labels) == {"team": "ray"}
    assert again.cluster_spec.HasField("suspend")
    assert again.cluster_spec.worker_group_spec[0].num_of_hosts == 4
    assert again.cluster_spec.worker_group_spec[0].suspend
    assert json_format.MessageToDict(again.cluster_spec.worker_group_spec[0].affinity) == affinity


def test_labels_of_the_api_itself_cannot_be_overridden() -> None:
    labels = {"app.kubernetes.io/managed-by": "me", "ray.io/user": "somebody", "mine": "yes"}
    cluster = a_cluster({"headGroupSpec": a_head()}, labels=labels)
    made = to_ray_cluster(cluster, {"t": a_template()}, "TIME")["metadata"]["labels"]
    assert made["app.kubernetes.io/managed-by"] == "kuberay-apiserver"
    assert made["ray.io/user"] == "u"
    assert made["mine"] == "yes"


def test_free_fields_are_merged_last_and_containers_by_name() -> None:
    pod = {
        "spec": {
            "containers": [{"name": "ray-head", "stdin": True}, {"name": "beside", "image": "i"}],
            "hostNetwork": True,
        }
    }
    head = a_head(spec={"template": pod, "resources": {"CPU": "0"}})
    cluster = a_cluster(
        {"headGroupSpec": head, "spec": {"gcsFaultToleranceOptions": {"redisAddress": "r:6379"}, "ttl": 5}}
    )
    spec = to_ray_cluster(cluster, {"t": a_template()}, "TIME")["spec"]
    template = spec["headGroupSpec"]["template"]["spec"]
    assert [container["name"] for container in template["containers"]] == ["ray-head", "beside"]
    assert template["containers"][0]["stdin"] is True
    assert template["containers"][0]["image"] == "rayproject/ray:"
    assert template["hostNetwork"] is True
    assert spec["headGroupSpec"]["resources"] == {"CPU": "0"}
    assert spec["gcsFaultToleranceOptions"] == {"redisAddress": "r:6379"}
    assert spec["ttl"] == 5, "a whole number, not 5.0"


def test_merging_replaces_lists_without_names_and_removes_by_null() -> None:
    base = {"a": [1, 2], "b": {"c": 1, "d": 2}, "e": [{"name": "x", "v": 1}]}
    over = {"a": [3], "b": {"c": None}, "e": [{"name": "x", "w": 2}, {"name": "y"}]}
    assert merged(base, over) == {"a": [3], "b": {"d": 2}, "e": [{"name": "x", "v": 1, "w": 2}, {"name": "y"}]}
    assert base["b"] == {"c": 1, "d": 2}, "left as it was"


@pytest.mark.parametrize(
    ("fields", "limits", "requests_"),
    [
        ({}, {"cpu": "1", "memory": "2Gi"}, {"cpu": "1", "memory": "2Gi"}),
        ({"limits": {"cpu": "1500m"}}, {"cpu": "1500m", "memory": "2Gi"}, {"cpu": "1500m", "memory": "2Gi"}),
        ({"requests": {"cpu": "500m"}}, {"cpu": "1", "memory": "2Gi"}, {"cpu": "500m", "memory": "2Gi"}),
        ({"cpu": 0, "requests": {"cpu": "500m"}}, {"memory": "2Gi"}, {"cpu": "500m", "memory": "2Gi"}),
        (
            {"limits": {"example.com/fpga": "1"}},
            {"cpu": "1", "memory": "2Gi", "example.com/fpga": "1"},
            {"cpu": "1", "memory": "2Gi", "example.com/fpga": "1"},
        ),
    ],
)
def test_a_template_may_have_parts_of_a_cpu_and_requests_of_their_own(
    fields: dict[str, Any], limits: dict[str, str], requests_: dict[str, str]
) -> None:
    assert to_resources(a_template(**fields)) == {"limits": limits, "requests": requests_}


def test_an_amount_that_is_none_is_refused() -> None:
    with pytest.raises(Untranslatable, match='invalid limits cpu quantity "many"'):
        to_config_map(parsed(ComputeTemplate(), {"name": "t", "cpu": 1, "memory": 1, "limits": {"cpu": "many"}}))


def test_a_template_survives_its_config_map() -> None:
    fields = {
        "name": "t",
        "namespace": "n",
        "cpu": 4,
        "memory": 8,
        "memoryUnit": "Gi",
        "limits": {"cpu": "4500m"},
        "requests": {"memory": "6Gi"},
        "nodeSelector": {"zone": "a"},
        "affinity": {"podAntiAffinity": {"x": [1.0, True]}},
    }
    assert json_format.MessageToDict(as_stored(parsed(ComputeTemplate(), fields))) == fields


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"cpu": "-1", "memory": "1e3", "gpu": "\u0661"},
        {"cpu": "99999999999999999999999", "extended_resources": '{"a": -1, "b": 99999999999}'},
        {"tolerations": "[" * 10_000, "affinity": '"text"', "limits": '{"a": 5}'},
        {"tolerations": '[{"key": 5}]'},
    ],
)
def test_a_config_map_that_somebody_broke_is_read_as_far_as_it_goes(data: dict[str, str]) -> None:
    template = from_config_map({"metadata": {"name": "t"}, "data": data})
    assert template.name == "t"
    assert dict(template.limits) == {}


def test_fields_of_ours_reach_the_job_and_are_told_back() -> None:
    strategy = {"deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED", "ttlSeconds": 10}}]}
    fields = {
        "name": "j",
        "namespace": "n",
        "user": "u",
        "clusterSelector": {"a": "b"},
        "submissionMode": "HTTPMode",
        "backoffLimit": 3,
        "suspend": True,
        "deletionStrategy": strategy,
        "labels": {"kueue.x-k8s.io/queue-name": "team"},
        "spec": {"preRunningDeadlineSeconds": 60},
    }
    made = to_ray_job(parsed(RayJob(), fields), {})
    assert made["spec"]["submissionMode"] == "HTTPMode"
    assert made["spec"]["backoffLimit"] == 3
    assert made["spec"]["suspend"] is True
    assert made["spec"]["deletionStrategy"] == strategy
    assert made["spec"]["preRunningDeadlineSeconds"] == 60
    again = json_format.MessageToDict(from_ray_job(made))
    for name in ("submissionMode", "backoffLimit", "suspend", "deletionStrategy", "labels"):
        assert again[name] == fields[name]


def test_fields_of_ours_reach_the_service_and_are_told_back() -> None:
    fields = {
        "name": "s",
        "namespace": "n",
        "user": "u",
        "serveConfigV2": "applications: []",
        "clusterSpec": {"headGroupSpec": a_head()},
        "labels": {"team": "ray"},
        "annotations": {"note": "x"},
        "suspend": False,
        "upgradeStrategy": {"type": "None"},
        "spec": {"excludeHeadPodFromServeSvc": True},
    }
    made = to_ray_service(parsed(RayService(), fields), {"t": a_template()}, {CREATION_TIMESTAMP: "TIME"})
    assert made["spec"]["excludeHeadPodFromServeSvc"] is True
    assert made["spec"]["upgradeStrategy"] == {"type": "None"}
    again = json_format.MessageToDict(from_ray_service(made, ()))
    for name in ("labels", "annotations", "suspend", "upgradeStrategy"):
        assert again[name] == fields[name]


def odd_objects() -> Iterator[dict[str, Any]]:
    """Objects with our label that nobody made by this API."""
    yield {"metadata": {"name": "a"}}
    yield {"metadata": {"name": "a", "labels": None, "annotations": None}, "spec": None, "status": None}
    yield {"metadata": {"name": "a"}, "spec": {"headGroupSpec": {"template": {"spec": {"containers": []}}}}}
    secret = {"name": "s", "secret": {"secretName": "x", "items": [{"key": "a", "path": "b"}]}}
    pod = {"spec": {"containers": [{"name": "other"}], "volumes": [secret, {"name": "p", "projected": {}}]}}
    yield {
        "metadata": {"name": "a"},
        "spec": {"headGroupSpec": {"template": pod}, "workerGroupSpecs": [{"template": pod}]},
    }
    options = {"envFrom": [{"prefix": "x"}], "resources": {}}
    yield {"metadata": {"name": "a"}, "spec": {"enableInTreeAutoscaling": True, "autoscalerOptions": options}}


@pytest.mark.parametrize("found", list(odd_objects()))
def test_objects_that_lack_anything_are_told_as_far_as_they_go(found: dict[str, Any]) -> None:
    """KubeRay's process ends at several of them."""
    assert from_ray_cluster(found, ()).name == "a"
    assert (
        from_ray_job({**found, "spec": {"rayClusterSpec": found.get("spec") or {}, "submitterPodTemplate": {}}}).name
        == "a"
    )
    assert from_ray_service({**found, "spec": {"rayClusterConfig": found.get("spec") or {}}}, ()).name == "a"


def test_a_submission_reads_as_ray_takes_it() -> None:
    fields = {
        "entrypoint": "python x.py",
        "runtimeEnv": "pip: [a]\nenv_vars: {B: c}\n",
        "entrypointNumCpus": 0.5,
        "entrypointResources": {"special": "1.5"},
    }
    submission = to_submission(parsed(RayJobSubmission(), fields))
    assert submission.runtime_env == {"pip": ["a"], "env_vars": {"B": "c"}}
    assert submission.entrypoint_resources == {"special": 1.5}


@pytest.mark.parametrize(
    "fields",
    [
        {"runtimeEnv": "- a"},
        {"runtimeEnv": "a: ["},
        {"runtimeEnv": "a: &x [1]\n" + "".join(f"k{i}: &k{i} [{'*x, ' * 50}]\n" for i in range(1)) + "b: *nope"},
        {"entrypointResources": {"a": "many"}},
        {"entrypointResources": {"a": "nan"}},
        {"entrypointResources": {"a": "inf"}},
    ],
)
def test_a_submission_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Untranslatable):
        to_submission(parsed(RayJobSubmission(), {"entrypoint": "x", **fields}))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (5, "5"),
        (1.5, "1.5"),
        (2.0, "2"),
        (True, "true"),
        (None, "<nil>"),
        (["a", 1, None], "[a 1 <nil>]"),
        ({"b": 1, "a": {"c": []}}, "map[a:map[c:[]] b:1]"),
    ],
)
def test_values_are_printed_as_go_prints_them(value: Any, text: str) -> None:
    assert go_text(value) == text
