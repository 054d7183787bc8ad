"""What V2 asks of whoever guards a caller's rights, before Kubernetes sees the request with ours."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from raykeeper.apiserver.auth.callers import Caller, PassedOn
from raykeeper.apiserver.v2 import proxy as v2
from raykeeper.apiserver.v2.proxy import YAML_BYTES, V2Proxy
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.http.requests import Request
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.web.listener import BoundedServer
from raykeeper.web.targets import Target
from support.kube_clients import anonymous
from support.scripted_server import served

PREFIX = "/k8s/clusters/c-1"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SERVICE = "/api/v1/namespaces/team/services/head/proxy/"
YAML = "application/yaml"
CLUSTER = "/apis/ray.io/v1/namespaces/team/rayclusters/a"


class Scene:
    """A caller who may do all but what is in `forbidden`, and what Kubernetes was sent."""

    def __init__(self) -> None:
        self.forbidden: set[str] = set()
        self.passes_token = False
        self.has_service = False
        self.sent: list[str] = []
        self.content_types: list[str | None] = []
        self.url = ""
        self.kube: Kube

    async def caller(self, authorization: str | None) -> Caller:
        if self.passes_token:
            return await PassedOn(self.kube).caller(authorization)
        return Caller("jane", self.kube.with_guard(self._guard))

    async def _guard(self, request: Request) -> None:
        if request.method in self.forbidden:
            raise Forbidden(request.about, 403, "Forbidden", f"no {request.method} of {request.path}")

    async def kubernetes(self, request: web.BaseRequest) -> web.StreamResponse:
        """Behind a prefix, as Rancher's is. A token of its own may do what is not `forbidden` either."""
        path = request.path.removeprefix(PREFIX)
        assert path != request.path
        self.sent.append(f"{request.method} {path}")
        self.content_types.append(request.headers.get("Content-Type"))
        if request.headers.get("Authorization") == "Bearer junk":
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        if path == REVIEWS:
            asked = (await request.json())["spec"]["resourceAttributes"]["verb"]
            is_allowed = asked not in {{"GET": "get", "POST": "create"}[method] for method in self.forbidden}
            return web.json_response({"metadata": {}, "status": {"allowed": is_allowed}}, status=201)
        items = [{"metadata": {"name": "head"}}] if self.has_service and path.endswith("/services") else []
        return web.json_response({"kind": "List", "metadata": {}, "items": items})

    async def ask(self, method: str, path: str, body: bytes = b"{}", **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
            session.request(method, self.url + path, data=io.BytesIO(body), headers=named) as answer,
        ):
            await answer.read()
            return answer.status


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene, registry = Scene(), CollectorRegistry()
    async with served(scene.kubernetes) as url, Kube(anonymous(url + PREFIX), metrics=KubeMetrics(registry)) as kube:
        scene.kube = kube
        proxy = V2Proxy(kube, scene, Counter("requests", "x", ("method", "code"), registry=registry))

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            response = await proxy.answer(request, Target.parse(request.raw_path), {})
            assert response is not None
            return response

        server = BoundedServer(handle)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        scene.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        yield scene
        listener.close()
        await server.shutdown(0)


@pytest.mark.parametrize("content_type", ["application/apply-patch+yaml", "Application/Apply-Patch+YAML; charset=x"])
async def test_an_apply_needs_the_right_to_create_as_well(content_type: str, scene: Scene) -> None:
    """Kubernetes asks for it itself, but of us."""
    scene.forbidden = {"POST"}
    assert await scene.ask("PATCH", CLUSTER, Content_Type=content_type) == 403
    assert scene.sent == []
    assert await scene.ask("PATCH", CLUSTER, Content_Type="application/merge-patch+json") == 200


async def test_who_may_not_use_a_service_does_not_learn_whether_it_is_there(scene: Scene) -> None:
    scene.forbidden = {"GET"}
    assert await scene.ask("GET", "/api/v1/namespaces/team/services/head/proxy/") == 403
    assert scene.sent == []
    scene.forbidden = set()
    assert await scene.ask("GET", "/api/v1/namespaces/team/services/head/proxy/") == 404


@pytest.mark.parametrize("has_service", [True, False])
async def test_a_made_up_token_does_not_tell_which_services_there_are(has_service: bool, scene: Scene) -> None:
    """The look for the Service is ours, and Kubernetes would see the token only afterwards."""
    scene.passes_token, scene.has_service = True, has_service
    assert await scene.ask("GET", SERVICE, Authorization="Bearer junk") == 401
    scene.forbidden = {"GET"}
    assert await scene.ask("GET", SERVICE, Authorization="Bearer good") == 403
    assert scene.sent == [f"POST {REVIEWS}"] * 2
    scene.forbidden = set()
    assert await scene.ask("GET", SERVICE, Authorization="Bearer good") == (200 if has_service else 404)


async def test_a_body_is_not_read_for_who_may_not_send_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(v2, "_parsed", lambda body, _: parsed.append(body))
    body = b"spec: {headGroupSpec: {computeTemplate: small}}"
    scene.forbidden = {"POST"}
    assert await scene.ask("POST", CLUSTER, body, Content_Type=YAML) == 403
    scene.passes_token = True
    assert await scene.ask("POST", CLUSTER, body, Content_Type=YAML, Authorization="Bearer junk") == 401
    assert await scene.ask("POST", CLUSTER, body, Content_Type=YAML, Authorization="Bearer good") == 403
    assert parsed == []
    scene.forbidden = set()
    assert await scene.ask("POST", CLUSTER, body, Content_Type=YAML, Authorization="Bearer good") == 200
    assert await scene.ask("POST", CLUSTER, b"a: b", Content_Type=YAML, Authorization="Bearer good") == 200
    assert parsed == [body], "one without a template is Kubernetes' to read"


async def test_yaml_that_takes_long_to_read_is_refused(scene: Scene) -> None:
    body = b"computeTemplate: small\n" + b"#" * YAML_BYTES
    assert await scene.ask("POST", CLUSTER, body, Content_Type=YAML) == 413
    assert scene.sent == []


async def test_a_body_without_a_content_type_gets_none(scene: Scene) -> None:
    """Kubernetes takes it for JSON; with application/octet-stream it answers 415."""
    assert await scene.ask("POST", CLUSTER) == 200
    assert scene.content_types == [None]


async def test_an_upgrade_goes_to_the_server_under_its_prefix(scene: Scene) -> None:
    scene.has_service = True
    assert await scene.ask("GET", SERVICE, b"", Connection="Upgrade", Upgrade="websocket") != 503
    assert scene.sent[-1] == f"GET {SERVICE}"
