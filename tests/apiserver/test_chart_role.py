"""The roles of the chart hold what the API server does and nothing else; the audit log of Kubernetes is witness."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Iterator, Mapping
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
from support.api_access import call
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
    flags: tuple[str, ...] = ()
    has_v2: bool = True
    refused: set[Right] = field(default_factory=set)


TOKENS_OF_CLUSTERS: Final = Right("", "secrets", "get")
MODES: Final = {
    "as-it-is": Mode({}, refused={TOKENS_OF_CLUSTERS}),
    "with-tokens-of-clusters": Mode({"readClusterTokens": True}),
    "first-version": Mode(
        {"enableAPIServerV2": False}, ("--enable-api-server-v2=false",), has_v2=False, refused={TOKENS_OF_CLUSTERS}
    ),
}


def account(mode: str) -> str:
    return f"system:serviceaccount:{mode}:{NAME}"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AuditLog]:
    folder = tmp_path_factory.mktemp("audit")
    return {mode: AuditLog(folder, account(mode)) for mode in MODES}


@pytest.fixture(scope="module")
def plane(logs: dict[str, AuditLog], new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    """A Kubernetes that writes down what each API server asks for."""
    flags = logs["as-it-is"].flags(*map(account, MODES))
    plane = new_control_plane(ControlPlaneSettings(extra_flags={"kube-apiserver": flags}))
    install_ray_crds(plane)
    for mode in MODES:
        make_namespace(plane, mode)
    return plane


def install_roles(plane: ControlPlane, mode: str) -> set[Right]:
    """The account and the roles that the chart renders. Returns every right in them."""
    documents = CHART.render({**MODES[mode].values, "name": f"{NAME}-{mode}"}, namespace=mode, release=f"api-{mode}")
    wanted = [item for item in documents if "Role" in item["kind"] or item["kind"] == "ServiceAccount"]
    plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(wanted))
    plane.wait_for_right(account(mode), "list", "rayclusters", "ray.io")
    return {
        Right(group, kind, verb)
        for role in wanted
        for rule in role.get("rules", [])
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }


def v1_calls(plane: ControlPlane, server: ApiProcess, mode: str) -> set[str]:
    """Every call of V1; returns their names."""
    made = set()
    for scenario in TOLD:
        Run(plane, server.ports, "grpc", mode).tell(scenario)
        made |= set(re.findall(r"call: (proto\.\w+\.\w+)", (SCENARIOS / f"{scenario}.yaml").read_text()))
    make_guarded_cluster(plane, mode)
    for name, more in SUBMISSIONS.items():
        method = f"proto.RayJobSubmissionService.{name}"
        call(server.ports, "grpc", method, {"namespace": mode, "clustername": "guarded", **more}, {})
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


def ask(server: ApiProcess, method: str, path: str, body: Any = None, kind: str = "application/json") -> int:
    connection = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {} if data is None else {"Content-Type": kind})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def v2_requests(plane: ControlPlane, server: ApiProcess, namespace: str) -> Mapping[str, int]:
    """Every kind of request that V2 passes on, with its status."""
    answers: dict[str, int] = {}

    def send(method: str, path: str, body: Any = None, kind: str = "application/json") -> None:
        answers[f"{method} {path} {kind}"] = ask(server, method, path, body, kind)

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
        version = plane.admin.get(f"{here}/{plural}/v2")["metadata"]["resourceVersion"]
        send("PUT", f"{here}/{plural}/v2", an_object(plural, "v2", resourceVersion=version))
        send("DELETE", f"{here}/{plural}/v2")
    for events in (f"/api/v1/namespaces/{namespace}/events", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"):
        for query in ("", "?watch=true&timeoutSeconds=1"):
            send("GET", f"{events}{query}")
    return answers


def proxied_requests(plane: ControlPlane, server: ApiProcess, namespace: str) -> set[int]:
    """Every method to a head's Service; it has no pod, so Kubernetes says 503 to those who may."""
    labels = {"app.kubernetes.io/name": "kuberay"}
    services = f"/api/v1/namespaces/{namespace}/services"
    ports = {"ports": [{"name": "dashboard", "port": 8265}]}
    plane.admin.post(services, {"metadata": {"name": "head", "labels": labels}, "spec": ports})
    plane.admin.post(f"/api/v1/namespaces/{namespace}/endpoints", {"metadata": {"name": "head"}})
    path = f"{services}/head:dashboard/proxy/api/jobs/"
    return {ask(server, method, path, body) for method, body in PROXIED.items()}


PROXIED: Final[dict[str, Json | None]] = {"GET": None, "POST": {}, "PUT": {}, "PATCH": {}, "DELETE": None}


@pytest.mark.parametrize("mode", MODES)
def test_every_right_of_the_roles_is_used_and_none_is_missing(
    mode: str, plane: ControlPlane, logs: dict[str, AuditLog], tmp_path: Path
) -> None:
    granted = install_roles(plane, mode)
    access = plane.kubeconfig(token=plane.token(mode, NAME), namespace=mode)
    with api_server_on(plane, tmp_path, "--auth=none", *MODES[mode].flags, kubeconfig=access) as server:
        every = {f"{one.service}.{one.name}" for one in calls(SystemClock(), Heads("cluster.local", False))}
        assert v1_calls(plane, server, mode) == every
        if MODES[mode].has_v2:
            assert {one: code for one, code in v2_requests(plane, server, mode).items() if code not in (200, 201)} == {}
            assert proxied_requests(plane, server, mode) == {503}
    assert logs[mode].refused() == MODES[mode].refused
    assert logs[mode].used() == granted
