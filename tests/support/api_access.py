"""People with different rights, and calls that need them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import ServerPorts
from bed.rest import Json
from support.api_scenarios import as_http, method_named

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REST_CODES = {200: "OK", 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
REST_CODES |= {409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED", 500: "UNKNOWN", 503: "UNAVAILABLE"}

RAY_KINDS = ["rayclusters", "rayjobs", "rayservices"]
READ = [
    {"apiGroups": ["ray.io"], "resources": RAY_KINDS, "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
]
WRITE = [
    {"apiGroups": ["ray.io"], "resources": RAY_KINDS, "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["get", "list"]},
]
HEADS = {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["*"]}
"""What jobs of a head need."""
SERVER = [
    *WRITE,
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
]
"""What the chart gives the server, and what it needs to ask about others and to act in their name."""


def service_account(namespace: str, name: str) -> Json:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def user(name: str) -> Json:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def group(name: str) -> Json:
    return {"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def make_account(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.admin.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})


def grant(plane: ControlPlane, namespace: str, name: str, rules: list[Any], *subjects: Json) -> None:
    """A role in one namespace."""
    place = f"{RBAC}/namespaces/{namespace}"
    plane.admin.post(f"{place}/roles", {"metadata": {"name": name}, "rules": rules})
    plane.admin.post(f"{place}/rolebindings", _binding(name, "Role", subjects))


def grant_everywhere(plane: ControlPlane, name: str, rules: list[Any], *subjects: Json) -> None:
    plane.admin.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    plane.admin.post(f"{RBAC}/clusterrolebindings", _binding(name, "ClusterRole", subjects))


def revoke_everywhere(plane: ControlPlane, name: str) -> None:
    plane.admin.delete(f"{RBAC}/clusterrolebindings/{name}")
    plane.admin.delete(f"{RBAC}/clusterroles/{name}")


def _binding(name: str, kind: str, subjects: tuple[Json, ...]) -> Json:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    return {"metadata": {"name": name}, "subjects": list(subjects), "roleRef": role}


@dataclass(frozen=True)
class Outcome:
    """What came of a call, in gRPC's word for it, and everything that was told."""

    code: str
    text: str


def call(
    ports: ServerPorts, protocol: str, name: str, request: Mapping[str, Any], headers: Mapping[str, str]
) -> Outcome:
    """One call of the API in either protocol."""
    return _by_grpc(ports, name, request, headers) if protocol == "grpc" else _by_http(ports, name, request, headers)


def _by_grpc(ports: ServerPorts, name: str, request: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
    from google.protobuf import json_format

    method = method_named(name)
    message = json_format.ParseDict(dict(request), GetMessageClass(method.input_type)())
    with grpc.insecure_channel(f"{LOOPBACK}:{ports.grpc}") as channel:
        invoke: Any = channel.unary_unary(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=lambda it: it.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        try:
            answer = invoke(message, timeout=60, metadata=tuple((key.lower(), value) for key, value in headers.items()))
        except grpc.RpcError as error:
            return Outcome(error.code().name, error.details() or "")
    return Outcome("OK", json_format.MessageToJson(answer))


def _by_http(ports: ServerPorts, name: str, request: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
    verb, path, body = as_http(name, dict(request))
    connection = http.client.HTTPConnection(LOOPBACK, ports.http, timeout=60)
    try:
        connection.request(verb, path, None if body is None else json.dumps(body), dict(headers))
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    return Outcome(REST_CODES[response.status], text)
