"""Nothing that is not Ray's comes through V2, in whatever way it is asked for.

The server has all rights of the cluster, so that only its filter stands between a caller and a Secret.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from support.api_processes import ApiProcess, api_server_on

CONTENT = "content-of-somebody-else"
N = "/api/v1/namespaces/$n"
R = "/apis/ray.io/v1"
SELECTOR = "involvedObject.apiVersion"

ATTEMPTS = [
    # Plainly.
    f"GET {N}/secrets",
    f"GET {N}/secrets/it",
    f"GET {N}/configmaps/it",
    f"GET {N}/pods/it",
    f"GET {N}/pods/it/log",
    f"GET {N}/services/it",
    f"GET {N}",
    "GET /api/v1/namespaces",
    "GET /api/v1/secrets",
    "GET /api/v1/events",
    "GET /apis/events.k8s.io/v1/events",
    "GET /api",
    "GET /apis",
    "GET /openapi/v2",
    "GET /apis/apps/v1/deployments",
    "GET /apis/ray.io/v1alpha1/namespaces/$n/rayclusters",
    "GET /apis/ray.io/v2/rayclusters",
    "GET /metrics/../api/v1/secrets",
    # By dots.
    f"GET {R}/../../../api/v1/namespaces/$n/secrets/it",
    f"GET {R}/./../../../api/v1/namespaces/$n/secrets/it",
    f"GET {R}/namespaces/$n/rayclusters/../../../../../../api/v1/namespaces/$n/secrets/it",
    f"GET {N}/events/../secrets/it",
    f"GET {N}/services/ray/proxy/../../../secrets/it",
    f"GET {N}/services/ray/proxy/../../secrets/it",
    f"GET {N}/services/../secrets/it/proxy",
    # By encoded dots and slashes.
    f"GET {R}/%2e%2e/%2e%2e/%2e%2e/api/v1/namespaces/$n/secrets/it",
    f"GET {R}/..%2f..%2f..%2fapi%2fv1%2fnamespaces%2f$n%2fsecrets%2fit",
    f"GET {R}/%2e%2e%2f%2e%2e%2f%2e%2e%2fapi%2fv1%2fsecrets",
    f"GET {R}%2f..%2f..%2f..%2fapi/v1/namespaces/$n/secrets/it",
    f"GET {R}/..;/..;/..;/api/v1/namespaces/$n/secrets/it",
    f"GET {R}/%252e%252e/%252e%252e/%252e%252e/api/v1/namespaces/$n/secrets/it",
    f"GET {R}/..\\..\\..\\api\\v1\\namespaces\\$n\\secrets\\it",
    f"GET {R}/%5c..%5c..%5capi/v1/secrets",
    f"GET {N}%2fsecrets%2fit",
    f"GET {N}/secrets%2fit",
    f"GET {N}/%73ecrets/it",
    f"GET {N}/services/ray%2f..%2f..%2fsecrets%2fit/proxy",
    f"GET {N}/services/ray/proxy/%2e%2e/%2e%2e/%2e%2e/secrets/it",
    f"GET {N}/services/ray/proxy/..%2f..%2f..%2fsecrets%2fit",
    f"GET {N}/services/ray/proxy%2f..%2f..%2f..%2fsecrets%2fit",
    f"GET {N}/services/ray/%70roxy/..%2f..%2fit/proxy/",
    f"GET {N}/events%2f..%2fsecrets%2fit",
    f"GET {N}/events%00/it",
    f"GET {R}%00/../../../api/v1/secrets",
    f"GET {R}/namespaces/$n/rayclusters%0d%0aX:%20y/it",
    # By slashes and cases.
    f"GET /{R}/../../../api/v1/secrets",
    "GET //api//v1//namespaces//$n//secrets//it",
    f"GET {R}//../../../../api/v1/secrets",
    "GET /APIS/ray.io/v1/../../../api/v1/secrets",
    "GET /apis/RAY.IO/v1/namespaces/$n/rayclusters",
    # By another host, and by absolute targets.
    f"GET http://localhost{N}/secrets/it",
    f"GET https://kubernetes.default.svc{N}/secrets/it",
    f"GET http://localhost{R}/../../../api/v1/secrets",
    # Events of others.
    f"GET {N}/events",
    f"GET {N}/events?fieldSelector=",
    f"GET {N}/events?fieldSelector={SELECTOR}%3Dv1",
    f"GET {N}/events?fieldSelector={SELECTOR}!%3Dray.io%2Fv1",
    f"GET {N}/events?fieldSelector={SELECTOR}%3Dv1&fieldSelector=reason%3Dx",
    f"GET {N}/events?fieldselector={SELECTOR}%3Dv1",
    f"GET {N}/events?field%53elector={SELECTOR}%3Dv1",
    f"GET {N}/events?x=1;fieldSelector={SELECTOR}%3Dv1",
    f"GET {N}/events?watch=true&timeoutSeconds=1&fieldSelector={SELECTOR}%3Dv1",
    f"GET {N}/events?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    f"GET {N}/events?labelSelector=a%3Db",
    f"GET {N}/events?resourceVersion=0",
    f"GET {N}/events/it",
    f"GET {N}/events/",
    "GET /api/v1/watch/namespaces/$n/events?timeoutSeconds=1",
    "GET /apis/events.k8s.io/v1/namespaces/$n/events?fieldSelector=regarding.apiVersion%3Dv1",
    "GET /apis/events.k8s.io/v1/namespaces/$n/events/it",
    f"DELETE {N}/events",
    f"DELETE {N}/events/it",
    f"POST {N}/events",
    # Services of others, and other ways to them.
    f"GET {N}/services/it/proxy",
    f"GET {N}/services/it:80/proxy/",
    f"GET {N}/services/http:it:80/proxy/",
    f"GET {N}/services/https:it:443/proxy/x",
    f"GET {N}/services/ray,it/proxy/",
    f"GET {N}/services/ray:80:it/proxy/",
    f"GET {N}/services/IT/proxy/",
    f"GET {N}/services/it%00/proxy/",
    f"GET {N}/services//proxy/",
    f"GET {N}/pods/it/proxy/",
    f"GET {N}/pods/it:80/proxy/",
    "GET /api/v1/nodes/it/proxy/",
    "GET /api/v1/proxy/namespaces/$n/services/ray/",
    f"POST {N}/pods/it/exec?command=sh",
    f"GET {N}/pods/it/portforward",
    f"GET {N}/services/ray/status",
    f"DELETE {N}/services/ray",
    # Other methods.
    f"PUT {N}/secrets/it",
    f"PATCH {N}/secrets/it",
    f"DELETE {N}/secrets/it",
    f"POST {N}/secrets",
    f"POST {N}/serviceaccounts/default/token",
    "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    f"TRACE {R}/rayclusters",
    f"CONNECT {R}/rayclusters",
]

HEADERS = [
    "",
    "X-HTTP-Method-Override: GET",
    "X-Original-URL: /api/v1/secrets",
    "X-Rewrite-URL: /api/v1/secrets",
    "X-Forwarded-Prefix: /api/v1/secrets",
    "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "Accept: application/vnd.kubernetes.protobuf",
    "Content-Type: application/vnd.kubernetes.protobuf",
    "Impersonate-User: system:admin",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",  # noqa: E501
]


@dataclass(frozen=True)
class Scene:
    server: ApiProcess
    namespace: str


@pytest.fixture(scope="module")
def scene(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Objects of somebody else beside a Service of Ray's, and a server that may do everything."""
    namespace, admin = f"v2-{uuid.uuid4().hex[:6]}", ray_crds.admin
    make_namespace(ray_crds, namespace)
    place = f"/api/v1/namespaces/{namespace}"
    notes = {"annotations": {"note": CONTENT}}
    admin.post(f"{place}/secrets", {"metadata": {"name": "it", **notes}, "stringData": {"key": CONTENT}})
    admin.post(f"{place}/configmaps", {"metadata": {"name": "it", **notes}, "data": {"key": CONTENT}})
    pod = {"containers": [{"name": "it", "image": CONTENT}]}
    admin.post(f"{place}/pods", {"metadata": {"name": "it", **notes}, "spec": pod})
    ports = {"ports": [{"port": 80}]}
    admin.post(f"{place}/services", {"metadata": {"name": "it", **notes}, "spec": ports})
    labels = {"labels": {"app.kubernetes.io/name": "kuberay"}}
    admin.post(f"{place}/services", {"metadata": {"name": "ray", **labels}, "spec": ports})
    event = {
        "metadata": {"name": "it", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "it", "namespace": namespace},
        "message": CONTENT,
        "reason": "x",
    }
    admin.post(f"{place}/events", event)
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as server:
        yield Scene(server, namespace)
    remove_namespace(ray_crds, namespace)


def answer(scene: Scene, attempt: str, header: str) -> bytes:
    """All bytes of the answer to bytes that no client library would send."""
    method, target = attempt.split(" ", 1)
    lines = [f"{method} {target.replace('$n', scene.namespace)} HTTP/1.1", "Host: localhost", "Connection: close"]
    head = "\r\n".join([*lines, *([header] if header else []), "Content-Length: 0", "", ""])
    with socket.create_connection((LOOPBACK, scene.server.ports.http), timeout=60) as connection:
        connection.sendall(head.encode())
        found = b""
        while piece := connection.recv(65536):
            found += piece
            if len(found) > 1 << 22:
                break
    return found


def test_there_are_at_least_sixty_attempts() -> None:
    assert len(set(ATTEMPTS)) >= 60


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_of_others_comes_through(attempt: str, scene: Scene) -> None:
    found = answer(scene, attempt, "")
    assert CONTENT.encode() not in found
    status = int(found.split(b" ")[1])
    if "/events" not in attempt or not attempt.startswith("GET"):
        assert status >= 300, found[:300]
    assert "by a bug" not in scene.server.output


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(
    "attempt",
    [
        f"GET {N}/secrets/it",
        f"POST {N}/secrets/it",
        f"GET {N}/events",
        f"GET {N}/services/it/proxy/",
        f"GET {R}/../../../api/v1/secrets",
    ],
)
def test_no_header_changes_that(attempt: str, header: str, scene: Scene) -> None:
    assert CONTENT.encode() not in answer(scene, attempt, header)


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1", "h2c", "x"])
@pytest.mark.parametrize("separately", [False, True])
def test_nothing_is_smuggled_behind_an_upgrade_that_was_refused(protocol: str, separately: bool, scene: Scene) -> None:
    """The connection to Kubernetes may have our certificate: only what answered 101 may get bytes of the caller."""
    place = f"/api/v1/namespaces/{scene.namespace}"
    upgrade = [
        f"GET {place}/services/ray/proxy/ HTTP/1.1",
        *("Host: localhost", "Connection: Upgrade", f"Upgrade: {protocol}"),
        *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    smuggled = [f"GET {place}/secrets/it HTTP/1.1", "Host: localhost", "Connection: close"]
    first, second = (("\r\n".join([*lines, "", ""])).encode() for lines in (upgrade, smuggled))
    with socket.create_connection((LOOPBACK, scene.server.ports.http), timeout=60) as connection:
        connection.sendall(first if separately else first + second)
        found = connection.recv(65536)
        try:
            if separately:
                connection.sendall(second)
            while piece := connection.recv(65536):
                found += piece
        except ConnectionError:
            pass  # it hung up, which is an answer
    assert found.startswith((b"HTTP/1.1 404", b"HTTP/1.1 503")), found[:300]  # nothing is behind the Service
    assert b"aiohttp" not in found
    assert CONTENT.encode() not in found
    assert b"stringData" not in found
    assert b'"kind":"Secret"' not in found


def test_everything_of_others_is_still_there(scene: Scene, ray_crds: ControlPlane) -> None:
    place = f"/api/v1/namespaces/{scene.namespace}"
    for kind in ("secrets", "configmaps", "pods", "services", "events"):
        assert ray_crds.admin.get(f"{place}/{kind}/it")["metadata"]["name"] == "it"
    assert ray_crds.admin.get(f"{place}/services/ray")
