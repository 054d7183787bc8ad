"""The roles of the chart hold what the API server does and nothing else; the audit log of Kubernetes is witness."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import LOOPBACK, ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from raykeeper.apiserver.services.heads import Heads
from raykeeper.apiserver.services.table import calls
from raykeeper.clock import SystemClock
from support.api_access import call, grant_everywhere, make_account, service_account
from support.api_processes import ApiProcess, api_server_on
from support.api_scenarios import SCENARIOS, Run
from support.audit import AuditLog
from support.helm_charts import Chart, Json
from support.operator_rights import RAY_KINDS, Right

NAME: Final = "kuberay-apiserver"
CHART: Final = Chart(NAME)
TOLD: Final = ("all_namespaces", "clusters", "compute_templates", "events", "jobs", "services")
"""Scenarios that make every call of V1, but for those of submissions."""
SUBMISSIONS: Final[dict[str, Json]] = {
    "SubmitRayJob": {"jobsubmission": {"entrypoint": "true"}},
    "GetJobDetails": {"submissionid": "one"},
    "GetJobLog": {"submissionid": "one"},
    "ListJobDetails": {},
    "StopRayJob": {"submissionid": "one"},
    "DeleteRayJob": {"submissionid": "one"},
}
GROUP: Final = {"containers": [{"name": "ray-head", "image": "ray"}]}
CLUSTER_SPEC: Final[Json] = {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": GROUP}}}
SPECS: Final[dict[str, Json]] = {
    "rayclusters": CLUSTER_SPEC,
    "rayjobs": {"entrypoint": "true", "rayClusterSpec": CLUSTER_SPEC},
    "rayservices": {"serveConfigV2": "applications: []", "rayClusterConfig": CLUSTER_SPEC},
    "raycronjobs": {"schedule": "@daily", "jobTemplate": {"entrypoint": "true", "rayClusterSpec": CLUSTER_SPEC}},
}
KINDS: Final = {
    "rayclusters": "RayCluster",
    "rayjobs": "RayJob",
    "rayservices": "RayService",
    "raycronjobs": "RayCronJob",
}


@dataclass(frozen=True)
class Mode:
    """One way to install the chart; its namespace has its name."""

    values: Json
    has_v2: bool = True
    refused: set[Right] = field(default_factory=set)
    unseen: set[Right] = field(default_factory=set)
    """Rights that an audit log does not show."""


TOKENS_OF_CLUSTERS: Final = Right("", "secrets", "get")
MODES: Final = {
    "as-it-is": Mode({}, refused={TOKENS_OF_CLUSTERS}),
    "with-tokens-of-clusters": Mode({"readClusterTokens": True}),
    "first-version": Mode({"enableAPIServerV2": False}, has_v2=False, refused={TOKENS_OF_CLUSTERS}),
    "kubernetes": Mode({"security": None, "readClusterTokens": True, "auth": {"mode": "kubernetes"}}),
    "passthrough": Mode({"security": None, "auth": {"mode": "passthrough"}}),
    "impersonate": Mode(
        {"security": None, "auth": {"mode": "kubernetes", "impersonate": True}},
        unseen={Right("", who, "impersonate") for who in ("groups", "serviceaccounts", "users")},
    ),
}
ADDRESSES: Final = ("--httpPortFlag", "--rpcPortFlag", "--metrics-addr")


@dataclass(frozen=True)
class Scene:
    """A server under the chart's roles, and a caller of it who may do everything."""

    plane: ControlPlane
    server: ApiProcess
    namespace: str
    headers: Json


def account(mode: str) -> str:
    return f"system:serviceaccount:{mode}:{NAME}"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AuditLog]:
    folder = tmp_path_factory.mktemp("audit")
    return {mode: AuditLog(folder, account(mode)) for mode in MODES}


@pytest.fixture(scope="module")
def plane(logs: dict[str, AuditLog], new_control_plane: NewControlPlane) -> ControlPlane:
    """A Kubernetes that writes down what each API server asks for."""
    flags = logs["as-it-is"].flags(*map(account, MODES))
    plane = new_control_plane(ControlPlaneSettings(extra_flags={"kube-apiserver": flags}))
    install_ray_crds(plane)
    for mode in MODES:
        make_namespace(plane, mode)
    return plane


def install_roles(plane: ControlPlane, mode: str) -> tuple[set[Right], list[str]]:
    """The account and the roles that the chart renders. Returns every right in them, and the server's arguments."""
    documents = CHART.render({**MODES[mode].values, "name": f"{NAME}-{mode}"}, namespace=mode, release=f"api-{mode}")
    wanted = [item for item in documents if "Role" in item["kind"] or item["kind"] == "ServiceAccount"]
    plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(wanted))
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    given = {
        Right(group, kind, verb)
        for role in wanted
        for rule in role.get("rules", [])
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }
    for group, kind, verb in given:
        plane.wait_for_right(account(mode), verb, kind, group)
    return given, [argument for argument in arguments if not argument.startswith(ADDRESSES)]


def a_caller(plane: ControlPlane, namespace: str) -> Json:
    """The header of somebody who may do everything."""
    make_account(plane, namespace, "caller")
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    grant_everywhere(plane, f"caller-{namespace}", rules, service_account(namespace, "caller"))
    plane.wait_for_right(f"system:serviceaccount:{namespace}:caller", "list", "rayclusters", "ray.io")
    return {"Authorization": f"Bearer {plane.token(namespace, 'caller')}"}


def v1_calls(scene: Scene) -> set[str]:
    """Every call of V1; returns their names."""
    made = set()
    for scenario in TOLD:
        Run(scene.plane, scene.server.ports, "grpc", scene.namespace, scene.headers).tell(scenario)
        made |= set(re.findall(r"call: (proto\.\w+\.\w+)", (SCENARIOS / f"{scenario}.yaml").read_text()))
    make_guarded_cluster(scene.plane, scene.namespace)
    for name, more in SUBMISSIONS.items():
        method = f"proto.RayJobSubmissionService.{name}"
        request = {"namespace": scene.namespace, "clustername": "guarded", **more}
        call(scene.server.ports, "grpc", method, request, scene.headers)
        made.add(method)
    return made


def make_guarded_cluster(plane: ControlPlane, namespace: str) -> None:
    """A ready cluster of V1 whose head wants a token. Nobody answers there: only Kubernetes' answers count here."""
    labels = {"app.kubernetes.io/managed-by": "kuberay-apiserver"}
    body = an_object("rayclusters", "guarded", labels=labels)
    body["spec"] = {**body["spec"], "authOptions": {"mode": "token"}}
    clusters = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    plane.admin.post(clusters, body)
    plane.admin.patch(f"{clusters}/guarded/status", {"status": {"state": "ready"}})
    token = base64.b64encode(b"a-token").decode()
    secret = {"metadata": {"name": "guarded"}, "data": {"auth_token": token}}
    plane.admin.post(f"/api/v1/namespaces/{namespace}/secrets", secret)


def an_object(plural: str, name: str, **metadata: Any) -> Json:
    head = {"apiVersion": "ray.io/v1", "kind": KINDS[plural]}
    return {**head, "metadata": {"name": name, **metadata}, "spec": SPECS[plural]}


def ask(scene: Scene, method: str, path: str, body: Any = None, kind: str = "application/json") -> int:
    connection = http.client.HTTPConnection(LOOPBACK, scene.server.ports.http, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, scene.headers | ({} if data is None else {"Content-Type": kind}))
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def v2_requests(scene: Scene) -> Mapping[str, int]:
    """Every kind of request that V2 passes on, with its status."""
    namespace = scene.namespace
    answers: dict[str, int] = {}

    def send(method: str, path: str, body: Any = None, kind: str = "application/json") -> None:
        answers[f"{method} {path} {kind}"] = ask(scene, method, path, body, kind)

    everywhere, here = "/apis/ray.io/v1", f"/apis/ray.io/v1/namespaces/{namespace}"
    send("GET", everywhere)
    for plural in RAY_KINDS:
        send("POST", f"{here}/{plural}", an_object(plural, "v2"))
        for query in ("", "?watch=true&timeoutSeconds=1"):
            send("GET", f"{here}/{plural}{query}")
            send("GET", f"{everywhere}/{plural}{query}")
        send("GET", f"{here}/{plural}/v2")
        send("GET", f"{here}/{plural}/v2/status")
        send("PATCH", f"{here}/{plural}/v2", {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
        applied = f"{here}/{plural}/applied?fieldManager=test"
        send("PATCH", applied, an_object(plural, "applied"), "application/apply-patch+yaml")
        version = scene.plane.admin.get(f"{here}/{plural}/v2")["metadata"]["resourceVersion"]
        send("PUT", f"{here}/{plural}/v2", an_object(plural, "v2", resourceVersion=version))
        send("DELETE", f"{here}/{plural}/v2")
    for events in (f"/api/v1/namespaces/{namespace}/events", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"):
        for query in ("", "?watch=true&timeoutSeconds=1"):
            send("GET", f"{events}{query}")
    return answers


def proxied_requests(scene: Scene) -> set[int]:
    """Every method to a head's Service; it has no pod, so Kubernetes says 503 to those who may."""
    admin, place = scene.plane.admin, f"/api/v1/namespaces/{scene.namespace}"
    labels = {"app.kubernetes.io/name": "kuberay"}
    ports = {"ports": [{"name": "dashboard", "port": 8265}]}
    admin.post(f"{place}/services", {"metadata": {"name": "head", "labels": labels}, "spec": ports})
    admin.post(f"{place}/endpoints", {"metadata": {"name": "head"}})
    path = f"{place}/services/head:dashboard/proxy/api/jobs/"
    return {ask(scene, method, path, body) for method, body in PROXIED.items()}


PROXIED: Final[dict[str, Json | None]] = {"GET": None, "POST": {}, "PUT": {}, "PATCH": {}, "DELETE": None}


@pytest.mark.parametrize("mode", MODES)
def test_every_right_of_the_roles_is_used_and_none_is_missing(
    mode: str, plane: ControlPlane, logs: dict[str, AuditLog], tmp_path: Path
) -> None:
    granted, arguments = install_roles(plane, mode)
    headers = a_caller(plane, mode) if "auth" in MODES[mode].values else {}
    access = plane.kubeconfig(token=plane.token(mode, NAME), namespace=mode)
    with api_server_on(plane, tmp_path, *arguments, kubeconfig=access) as server:
        scene = Scene(plane, server, mode, headers)
        every = {f"{one.service}.{one.name}" for one in calls(SystemClock(), Heads("cluster.local", False))}
        assert v1_calls(scene) == every
        if MODES[mode].has_v2:
            assert {one: code for one, code in v2_requests(scene).items() if code not in (200, 201)} == {}
            assert proxied_requests(scene) == {503}
    assert logs[mode].refused() == MODES[mode].refused
    assert logs[mode].used() == granted - MODES[mode].unseen
