"""Heads are reached by their services, with their clusters' tokens, and never written to by who does not lead."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from aiohttp import web

from ray_head.scripted_head import ScriptedHead, as_text, stalled
from rayclusters.manifests import a_cluster
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.proxied import Backend
from raykeeper.operator.rayhead.address import HeadAddress, dashboard_address, pod_address
from raykeeper.operator.rayhead.client import LARGE_AT_ONCE, PROXIED_SECONDS, Heads
from raykeeper.operator.rayhead.poller import HeadPoller, OwnerKey
from raykeeper.operator.rayhead.questions import Question, job_question
from raykeeper.operator.rayhead.token import KEPT_SECONDS, Tokens
from raykeeper.operator.shared.services import desired_head_service
from raykeeper.ray.dashboard import MIB
from raykeeper.ray.errors import RayRefused
from raykeeper.ray.jobs import JobInfo
from support.clocks import ManualClock
from support.conditions import until
from support.kube_clients import connected
from support.scripted_server import served

WITH_TOKEN = a_cluster().with_spec(rayVersion="2.60.0", authOptions={"mode": "token"}).build()
SECRET = "/api/v1/namespaces/default/secrets/rc"


class Closed:
    """The fence of a process that does not lead any more."""

    def check(self) -> None:
        raise NotLeading("not leading")


class ApiServer:
    """Has one Secret, and passes requests on to nobody."""

    def __init__(self) -> None:
        self.token = "first"
        self.relayed = b""
        """What a head answers to whatever is passed on to it, where that is not what was asked."""
        self.requests: list[str] = []
        self.hanging = ""
        """Where no head behind it answers."""
        self.waiting = 0
        self.may_end = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request.path)
        if self.hanging and self.hanging in request.path:
            self.waiting += 1
            await self.may_end.wait()
        if request.path == SECRET and self.token:
            data = {"auth_token": base64.b64encode(self.token.encode()).decode()}
            return web.json_response({"metadata": {"name": "rc", "namespace": "default"}, "data": data})
        if "/proxy/" in request.path and self.relayed:
            return web.Response(body=self.relayed)
        if "/proxy/" in request.path:
            shown = request.headers.get("X-Ray-Authorization", "")
            return web.Response(text=f"{request.method} {request.path_qs} {shown}")
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        return web.json_response(status, status=404)


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def kube(api: ApiServer, tmp_path: Path) -> AsyncIterator[Kube]:
    async with served(api.handle) as url:
        access = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": url}}],
            "users": [{"name": "x", "user": {}}],
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(access))
        async with connected(tmp_path / "kubeconfig") as kube:
            yield kube
        api.may_end.set()


@pytest.fixture
def script() -> ScriptedHead:
    return ScriptedHead()


@pytest.fixture
async def address(script: ScriptedHead) -> AsyncIterator[HeadAddress]:
    async with served(script.handle) as url:
        place = urlsplit(url)
        backend = Backend("services", ObjectKey("default", "rc-head-svc"), "dashboard")
        yield HeadAddress(place.hostname or "", place.port or 0, backend)


def test_the_dashboard_is_where_the_head_service_says() -> None:
    service = desired_head_service(a_cluster().build())
    address = dashboard_address(service, "cluster.local")
    assert address is not None
    assert address.authority == "rc-head-svc.default.svc.cluster.local:8265"
    assert address.backend.path("/api/version").endswith("/services/rc-head-svc:dashboard/proxy/api/version")
    service["spec"]["ports"] = [{"name": "x", "port": 1}]
    assert dashboard_address(service, "cluster.local") is None


def test_the_proxy_of_serve_is_where_its_pod_is() -> None:
    address = pod_address(ObjectKey("default", "rc-head-x"), "fd00::7", 8000)
    assert address.authority == "[fd00::7]:8000"
    assert address.backend.path("/-/healthz").endswith("/pods/rc-head-x:8000/proxy/-/healthz")


async def test_a_token_is_read_from_the_secret_and_again_after_a_while_or_a_refusal(kube: Kube, api: ApiServer) -> None:
    clock = ManualClock()
    tokens = Tokens(kube, clock)
    assert (await tokens.credentials(a_cluster().build())).headers() == {}
    assert (await tokens.credentials(WITH_TOKEN)).headers()["X-Ray-Authorization"] == "Bearer first"
    api.token = "second"
    assert (await tokens.credentials(WITH_TOKEN)).headers()["X-Ray-Authorization"] == "Bearer first"
    clock.advance(KEPT_SECONDS)
    assert (await tokens.credentials(WITH_TOKEN)).headers()["X-Ray-Authorization"] == "Bearer second"
    api.token = "third"
    tokens.forget(WITH_TOKEN)
    assert (await tokens.credentials(WITH_TOKEN)).headers()["X-Ray-Authorization"] == "Bearer third"


@pytest.mark.parametrize("token", ["", "two\nlines"])
async def test_a_secret_without_a_token_is_told(token: str, kube: Kube, api: ApiServer) -> None:
    api.token = token
    with pytest.raises(Unavailable, match="Secret default/rc"):
        await Tokens(kube, ManualClock()).credentials(WITH_TOKEN)


async def test_a_head_is_asked_with_the_clusters_token(kube: Kube, script: ScriptedHead, address: HeadAddress) -> None:
    head = Heads.by(kube, ManualClock(), is_proxied=False).of(WITH_TOKEN, address)
    assert (await head.get("/api/version")).is_ok
    assert script.headers[-1]["X-Ray-Authorization"] == "Bearer first"


async def test_a_head_that_wants_another_token_has_the_secret_read_again(
    kube: Kube, api: ApiServer, script: ScriptedHead, address: HeadAddress
) -> None:
    head = Heads.by(kube, ManualClock(), is_proxied=False).of(WITH_TOKEN, address)
    script.answer("/api/x", as_text("no", 403))
    for _ in range(2):
        with pytest.raises(RayRefused):
            await head.get("/api/x")
    assert api.requests.count(SECRET) == 2


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_nothing_is_sent_to_a_head_by_who_does_not_lead(
    is_proxied: bool, kube: Kube, api: ApiServer, script: ScriptedHead, address: HeadAddress
) -> None:
    head = Heads.by(kube.with_fence(Closed()), ManualClock(), is_proxied=is_proxied).of(a_cluster().build(), address)
    with pytest.raises(NotLeading):
        await head.send("POST", "/api/jobs/", b"{}")
    assert script.requests == []
    assert api.requests == []


async def test_a_head_that_says_nothing_is_given_up_in_time(
    kube: Kube, script: ScriptedHead, address: HeadAddress
) -> None:
    script.answer("/api/jobs/a", stalled)
    head = Heads.by(kube, ManualClock(), is_proxied=False).of(a_cluster().build(), address, seconds=0.1)
    with pytest.raises(Unavailable, match=r"within 0\.1 s"):
        await head.get("/api/jobs/a")


async def test_heads_that_send_much_are_read_a_few_at_a_time(
    kube: Kube, script: ScriptedHead, address: HeadAddress
) -> None:
    """Each of some hundred that are asked at once could send eight megabytes."""
    script.answer("/large", as_text(b"x" * MIB))
    script.answer("/small", as_text(b"x" * 1000))
    heads = Heads.by(kube, ManualClock(), is_proxied=False)
    taken = [await heads.large_answers.acquire() for _ in range(LARGE_AT_ONCE)]
    assert len((await heads.of(WITH_TOKEN, address).get("/small")).body) == 1000
    with pytest.raises(Unavailable, match=r"within 0\.3 s"):
        await heads.of(WITH_TOKEN, address, 0.3).get("/large")
    for _ in taken:
        heads.large_answers.release()
    assert len((await heads.of(WITH_TOKEN, address).get("/large")).body) == MIB


async def test_a_head_behind_the_api_server_cannot_send_without_end(
    kube: Kube, api: ApiServer, address: HeadAddress
) -> None:
    api.relayed = b"x" * (9 * MIB)
    with pytest.raises(Unavailable, match="more than 8388608 bytes"):
        await Heads.by(kube, ManualClock(), is_proxied=True).of(WITH_TOKEN, address).get("/api/version")


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_an_order_is_given_up_after_two_seconds_whichever_way_it_goes(
    is_proxied: bool, kube: Kube, api: ApiServer, script: ScriptedHead, address: HeadAddress
) -> None:
    script.answer("/api/jobs/", stalled)
    api.hanging = "/proxy/"
    head = Heads.by(kube, ManualClock(), is_proxied=is_proxied).of(a_cluster().build(), address)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="within 2 s"):
        await head.send("POST", "/api/jobs/", b"{}")
    assert time.monotonic() - began < PROXIED_SECONDS


async def test_living_heads_answer_in_time_through_the_api_server_beside_dead_ones_in_many_namespaces(
    kube: Kube, api: ApiServer
) -> None:
    api.hanging = "/namespaces/dead-"
    clock, heads = SystemClock(), Heads.by(kube, SystemClock(), is_proxied=True)
    poller = HeadPoller(clock, is_proxied=True)
    places = [ObjectKey(f"dead-{number % 6}", f"head-{number}") for number in range(120)]
    living = ObjectKey("default", "head")

    def ask(place: ObjectKey) -> Question[JobInfo | None]:
        address = HeadAddress("unused", 1, Backend("services", place, "dashboard"))
        return job_question(heads.of(a_cluster().build(), address), "job", every_seconds=0.05)

    api.relayed = b'{"submission_id": "job", "status": "RUNNING"}'
    for place in [living, *places]:
        poller.follow(OwnerKey("RayJob", place), [ask(place)])
    running = asyncio.create_task(poller.run())
    await until(lambda: poller.reading(OwnerKey("RayJob", living), ask(living)).has_answer)
    await until(lambda: api.waiting >= 10)
    ages = []
    for _ in range(30):
        await asyncio.sleep(0.1)
        ages.append(poller.reading(OwnerKey("RayJob", living), ask(living)).age_seconds(clock.now()))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert max(age for age in ages if age is not None) < 2


async def test_a_head_is_reached_through_the_api_server(kube: Kube, address: HeadAddress) -> None:
    head = Heads.by(kube, ManualClock(), is_proxied=True).of(WITH_TOKEN, address)
    answer = await head.get("/api/serve/applications/?api_type=declarative")
    place = "/api/v1/namespaces/default/services/rc-head-svc:dashboard/proxy/api/serve/applications/"
    assert answer.body.decode() == f"GET {place}?api_type=declarative Bearer first"
    answer = await head.send("PUT", "/api/serve/applications/", b"{}")
    assert answer.body.decode() == f"PUT {place} Bearer first"
