"""Random requests to V2: nothing that is not Ray's comes through, and every failure says why.

The server may do everything in one namespace, so that its filter alone stands between a request and a Secret. Elsewhere
it may do nothing: whatever is deleted at random is the walk's own.
"""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from support.api_access import grant, make_account, service_account
from support.api_processes import ApiProcess, api_server_on
from support.auth_stage import STANDING, an_object, make_standing

NAMESPACE = f"fuzz-v2-{uuid.uuid4().hex[:6]}"
CONTENT = "content-of-somebody-else"
OTHERS = ("secrets", "configmaps")
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
MIB = 1 << 20
MOST_GROWTH = 48 * MIB
MOST_READ = 64 << 10
"""Bytes of an answer that are looked at: a watch never ends."""


@dataclass(frozen=True)
class SentRequest:
    """A request as it is sent."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True)
class Scene:
    plane: ControlPlane
    server: ApiProcess

    def check(self, request: SentRequest) -> None:
        status, content_type, found = self._answer(request)
        assert CONTENT.encode() not in found, f"{request}: {found[:300]!r}"
        assert b"internal error" not in found, f"{request}: {found[:300]!r}"
        if status >= 500:
            assert request.method == "HEAD" or reason_in(content_type, found), f"{status} {request}: {found[:300]!r}"

    def _answer(self, request: SentRequest) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self.server.ports.http, timeout=60)
        try:
            connection.putrequest(request.method, request.target, skip_accept_encoding=True)
            for name, value in (*request.headers, ("Content-Length", str(len(request.body)))):
                connection.putheader(name, value)
            connection.endheaders(request.body)
            response = connection.getresponse()
            found = response.read(MOST_READ) if "watch" not in request.target else response.read1(MOST_READ)
            return response.status, response.headers.get("Content-Type", ""), found
        finally:
            connection.close()

    @property
    def memory(self) -> int:
        return int(psutil.Process(self.server.process.pid).memory_info().rss)


def reason_in(content_type: str, body: bytes) -> bool:
    """Whether an error says why, as Kubernetes says it or as V1 does."""
    if not content_type.startswith("application/json"):
        return bool(body.strip())
    return bool(json.loads(body).get("message"))


@pytest.fixture(scope="module")
def scene(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    make_namespace(ray_crds, NAMESPACE)
    make_account(ray_crds, NAMESPACE, "walker")
    grant(ray_crds, NAMESPACE, "all", [ALL], service_account(NAMESPACE, "walker"))
    place, metadata = f"/api/v1/namespaces/{NAMESPACE}", {"name": "it"}
    ray_crds.admin.post(f"{place}/secrets", {"metadata": metadata, "stringData": {"it": CONTENT}})
    ray_crds.admin.post(f"{place}/configmaps", {"metadata": metadata, "data": {"it": CONTENT}})
    kubeconfig = ray_crds.kubeconfig("fuzz-v2", token=ray_crds.token(NAMESPACE, "walker"))
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none", kubeconfig=kubeconfig) as server:
        yield Scene(ray_crds, server)
    remove_namespace(ray_crds, NAMESPACE)


# ASCII without what ends a request line: a client that sends that is a test of its own.
odd = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=12)
segments = st.sampled_from(
    [
        *("apis", "api", "v1", "ray.io", "events.k8s.io", "namespaces", NAMESPACE, "kube-system", "watch"),
        *(
            "rayclusters",
            "rayjobs",
            "rayservices",
            "raycronjobs",
            "secrets",
            "configmaps",
            "pods",
            "events",
            "services",
        ),
        *(STANDING, "it", "status", "proxy", "log", "exec", "scale", "token", "compute_templates"),
        *("..", ".", "", "%2e%2e", "%2f", "%00", "%ff", "%252e", ";", "*", ":", "~", "it:80", "https:it:443"),
    ]
)
starts = st.sampled_from(
    [
        *("/", "/apis/", "/api/v1/", "/apis/ray.io/v1/", "/apis/v1/", f"/api/v1/namespaces/{NAMESPACE}/"),
        *[f"/apis/ray.io/v1/namespaces/{NAMESPACE}/{kind}/" for kind in ("rayclusters", "rayjobs", "rayservices")],
        f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters/{STANDING}",
        f"/api/v1/namespaces/{NAMESPACE}/services/it/proxy/",
        f"/api/v1/namespaces/{NAMESPACE}/events",
    ]
)
parameters = st.sampled_from(
    [
        *("watch=true&timeoutSeconds=2", "watch=1&timeoutSeconds=2&allowWatchBookmarks=true", "limit=1", "limit=-1"),
        *(
            "continue=x",
            "labelSelector=a%3Db",
            "labelSelector=%21",
            "fieldSelector=metadata.name%3Dit",
            "fieldSelector=x",
        ),
        *("fieldSelector=involvedObject.kind%3DSecret", "resourceVersion=0", "resourceVersion=x", "dryRun=All"),
        *("dryRun=x", "fieldManager=a", "force=true", "pretty=true", "timeout=1ns", "propagationPolicy=Orphan"),
        *("follow=true", "_=%00", "&&", "=", "%", "a;b"),
    ]
)
methods = st.sampled_from(
    ["GET"] * 6 + ["POST", "PUT", "PATCH", "DELETE"] * 2 + ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "get", "X"]
)
content_types = st.sampled_from(
    [
        *("application/json", "application/yaml", "application/apply-patch+yaml", "application/merge-patch+json"),
        *(
            "application/json-patch+json",
            "application/strategic-merge-patch+json",
            "application/vnd.kubernetes.protobuf",
        ),
        *(
            "application/x-www-form-urlencoded",
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/cbor",
            "/",
        ),
        *("application/json; charset=utf-16", "APPLICATION/JSON;;", ""),
    ]
)
headers = st.lists(
    st.sampled_from(
        [
            *(
                ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
                ("Accept", "application/yaml"),
                ("Accept", "x"),
            ),
            *(("Accept", "application/vnd.kubernetes.protobuf"), ("Accept-Encoding", "gzip"), ("Expect", "x")),
            *(("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Upgrade", "SPDY/3.1"), ("Range", "bytes=0-")),
            *(("X-HTTP-Method-Override", "DELETE"), ("Impersonate-User", "system:admin"), ("Content-Encoding", "gzip")),
            *(("Origin", "https://example.com"), ("Forwarded", "host=x"), ("If-None-Match", "*")),
        ]
    ),
    max_size=3,
)
BODIES = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\x00",
    b"k8s\x00\x0a",
    b"a: &a [*a]",
    b"[" * 3000,
    b'{"a":' * 3000,
    json.dumps(an_object("rayjobs", "made")).encode(),
    json.dumps(an_object("rayclusters", STANDING)).encode(),
    json.dumps({"metadata": {"annotations": {"a": "b"}}}).encode(),
    json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}).encode(),
    b'[{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]',
    b'{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}}',
    b"apiVersion: v1\nkind: List\nitems: [{kind: Secret}]\n",
    b'{"spec": {"headGroupSpec": {"computeTemplate": "standing"}, "workerGroupSpecs": [{"computeTemplate": 5}]}}',
]


@st.composite
def requests(draw: st.DrawFn) -> SentRequest:
    path = draw(starts) + "/".join(draw(st.lists(segments | odd, max_size=7)))
    query = "&".join(draw(st.lists(parameters | odd, max_size=3)))
    own = [*draw(headers), ("Content-Type", draw(content_types))]
    target = f"{path.replace('#', '%23')}?{query.replace('#', '%23')}" if query else path.replace("#", "%23")
    body = draw(st.sampled_from(BODIES) | st.binary(max_size=200))
    return SentRequest(draw(methods), target, tuple(own), body)


def check_walk(scene: Scene, examples: int) -> None:
    make_standing(scene.plane, NAMESPACE)

    @settings(max_examples=examples)
    @given(requests())
    def any_request(request: SentRequest) -> None:
        scene.check(request)

    any_request()
    before = scene.memory
    any_request()
    assert scene.memory - before < MOST_GROWTH
    assert "by a bug" not in scene.server.output
    assert "Traceback" not in scene.server.output
    for kind in OTHERS:
        assert scene.plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/{kind}/it")["metadata"]["name"] == "it"
    made = scene.plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/secrets")["items"]
    assert "made" not in [one["metadata"]["name"] for one in made]


def test_random_requests_reach_nothing_of_others_and_failures_say_why(scene: Scene) -> None:
    check_walk(scene, 300)


@pytest.mark.soak
def test_random_requests_for_long_reach_nothing_of_others(scene: Scene) -> None:
    check_walk(scene, 10_000)
