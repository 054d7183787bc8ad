"""Compute templates in objects that pass through V2."""

from __future__ import annotations

import copy
import http.client
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from bed.rest import Json
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate, PodToleration
from raykeeper.apiserver.v2.templates import apply_templates, named_templates
from support.api_processes import ApiProcess, api_server_on

TEMPLATE = ComputeTemplate(
    name="gpu",
    namespace="n",
    cpu=4,
    memory=8,
    memory_unit="Gi",
    gpu=2,
    extended_resources={"example.com/fpga": 1},
    tolerations=[PodToleration(key="gpu", operator="Exists", effect="NoSchedule")],
    node_selector={"zone": "a"},
)


def a_pod(name: str) -> Json:
    own = {"name": name, "image": "ray", "resources": {"limits": {"cpu": "1", "ephemeral-storage": "1Gi"}}}
    return {"spec": {"containers": [own, {"name": "beside", "image": "x"}], "tolerations": [{"key": "own"}]}}


def a_spec() -> Json:
    head = {"computeTemplate": "gpu", "rayStartParams": {}, "template": a_pod("ray-head")}
    worker = {"groupName": "g", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {}}
    worker |= {"computeTemplate": "gpu", "template": a_pod("ray-worker")}
    return {"headGroupSpec": head, "workerGroupSpecs": [worker]}


KINDS: dict[str, Any] = {
    "rayclusters": ("RayCluster", lambda spec: spec),
    "rayjobs": ("RayJob", lambda spec: {"entrypoint": "true", "rayClusterSpec": spec}),
    "rayservices": ("RayService", lambda spec: {"rayClusterConfig": spec}),
    "raycronjobs": (
        "RayCronJob",
        lambda spec: {"schedule": "* * * * *", "jobTemplate": {"entrypoint": "true", "rayClusterSpec": spec}},
    ),
}


def an_object(plural: str) -> Json:
    kind, wrap = KINDS[plural]
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec": wrap(a_spec())}


def cluster_spec(plural: str, found: Json) -> Json:
    spec = found["spec"]
    inner = {"rayjobs": "rayClusterSpec", "rayservices": "rayClusterConfig"}.get(plural)
    if plural == "raycronjobs":
        return dict(spec["jobTemplate"]["rayClusterSpec"])
    return dict(spec[inner] if inner else spec)


def check_filled(spec: Json) -> None:
    for group, name in ((spec["headGroupSpec"], "ray-head"), (spec["workerGroupSpecs"][0], "ray-worker")):
        assert "computeTemplate" not in group
        assert group["template"]["metadata"]["annotations"]["ray.io/compute-template"] == "gpu"
        pod = group["template"]["spec"]
        own, beside = pod["containers"]
        assert own["name"] == name
        assert own["resources"]["limits"]["nvidia.com/gpu"] == "2"
        assert own["resources"]["limits"]["example.com/fpga"] == "1"
        assert own["resources"]["limits"]["ephemeral-storage"] == "1Gi"
        for container in (own, beside):
            for part in ("limits", "requests"):
                assert container["resources"][part]["cpu"] == "4"
                assert container["resources"][part]["memory"] == "8Gi"
        assert "nvidia.com/gpu" not in beside["resources"]["limits"]
        assert pod["tolerations"] == [{"key": "own"}, {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
        assert pod["nodeSelector"] == {"zone": "a"}


@pytest.mark.parametrize("plural", KINDS)
def test_every_kind_is_filled(plural: str) -> None:
    body = an_object(plural)
    assert named_templates(body) == ["gpu"]
    apply_templates(body, {"gpu": TEMPLATE})
    check_filled(cluster_spec(plural, body))


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {"spec": None},
        {"spec": []},
        {"spec": {"headGroupSpec": []}},
        {"spec": {"headGroupSpec": {"computeTemplate": 5}}},
        {"spec": {"workerGroupSpecs": {"computeTemplate": "gpu"}}},
        {"spec": {"workerGroupSpecs": [None, 5]}},
        {"spec": {"headGroupSpec": {"computeTemplate": "gpu"}}},
        {"spec": {"headGroupSpec": {"computeTemplate": "gpu", "template": {"spec": {"containers": 5}}}}},
        {
            "spec": {
                "headGroupSpec": {"computeTemplate": "gpu", "template": {"metadata": 5, "spec": {"containers": [5]}}}
            }
        },
    ],
)
def test_odd_objects_are_left_to_kubernetes(body: Any) -> None:
    names = named_templates(body)
    if isinstance(body, dict):
        apply_templates(copy.deepcopy(body), dict.fromkeys(names, TEMPLATE))


@dataclass(frozen=True)
class Scene:
    server: ApiProcess
    plane: ControlPlane
    namespace: str

    def send(self, method: str, path: str, body: str, content_type: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(LOOPBACK, self.server.ports.http, timeout=60)
        try:
            place = f"/apis/ray.io/v1/namespaces/{self.namespace}/{path}"
            connection.request(method, place, body, {"Content-Type": content_type})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def scene(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    namespace = f"v2t-{uuid.uuid4().hex[:6]}"
    make_namespace(ray_crds, namespace)
    data = {"cpu": "4", "memory": "8", "memory_unit": "Gi", "gpu": "2", "extended_resources": '{"example.com/fpga":1}'}
    data |= {
        "tolerations": '[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]',
        "node_selector": '{"zone":"a"}',
    }
    template = {"metadata": {"name": "gpu", "labels": {"ray.io/config-type": "compute-template"}}, "data": data}
    ray_crds.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", template)
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as server:
        yield Scene(server, ray_crds, namespace)
    remove_namespace(ray_crds, namespace)


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
@pytest.mark.parametrize("plural", KINDS)
def test_an_object_is_made_with_its_templates(plural: str, content_type: str, scene: Scene) -> None:
    body = an_object(plural)
    text = json.dumps(body) if content_type.endswith("json") else yaml.safe_dump(body)
    status, made = scene.send("POST", plural, text, content_type)
    assert status == 201, made
    check_filled(cluster_spec(plural, made))
    made["metadata"].pop("managedFields", None)
    again = an_object(plural) | {"metadata": made["metadata"]}
    status, replaced = scene.send("PUT", f"{plural}/a", json.dumps(again), "application/json")
    assert status == 200, replaced
    check_filled(cluster_spec(plural, replaced))
    scene.plane.admin.delete(f"/apis/ray.io/v1/namespaces/{scene.namespace}/{plural}/a")


def test_a_patch_may_name_templates_too(scene: Scene) -> None:
    plain = an_object("rayclusters")
    del plain["spec"]["headGroupSpec"]["computeTemplate"]
    del plain["spec"]["workerGroupSpecs"]
    status, _ = scene.send("POST", "rayclusters", json.dumps(plain), "application/json")
    assert status == 201
    patch = {"spec": {"headGroupSpec": {"computeTemplate": "gpu", "template": a_pod("ray-head")}}}
    status, patched = scene.send("PATCH", "rayclusters/a", json.dumps(patch), "application/merge-patch+json")
    assert status == 200
    limits = patched["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "2"
    scene.plane.admin.delete(f"/apis/ray.io/v1/namespaces/{scene.namespace}/rayclusters/a")


def test_a_template_that_is_not_there_is_named(scene: Scene) -> None:
    body = an_object("rayclusters")
    body["spec"]["headGroupSpec"]["computeTemplate"] = "missing"
    status, refusal = scene.send("POST", "rayclusters", json.dumps(body), "application/json")
    assert status == 422
    assert refusal["kind"] == "Status"
    assert "Cannot get compute template for name 'missing'" in refusal["message"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        ("{bad", "application/json", 400),
        ("a: [", "application/yaml", 400),
        ("\x00\x01", "application/vnd.kubernetes.protobuf", 415),
        ("{}", "text/plain", 415),
        ("[" * 100_000, "application/json", 400),
        ("a: &x [1]\nb: [" + "*x," * 10 + "]", "application/yaml", 400),
    ],
)
def test_what_is_no_object_is_refused_by_kubernetes(body: str, content_type: str, status: int, scene: Scene) -> None:
    found, refusal = scene.send("POST", "rayclusters", body, content_type)
    # At protobuf that is none kube-apiserver itself hangs up.
    assert found in (status, 400, 415, 422, *([503] if "protobuf" in content_type else [])), refusal
    assert refusal["kind"] == "Status"
