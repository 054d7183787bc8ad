"""Requests in the rights of others: with their token, in their name, or with ours after a guard let them pass."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from raykeeper.api.meta import ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import Connection, load_connection
from raykeeper.kube.connect.credentials import Identity, Login, RenewedCredentials
from raykeeper.kube.connect.tls import TlsMaterial
from raykeeper.kube.errors import Forbidden, Unauthorized
from raykeeper.kube.http.requests import Request
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import CONFIG_MAPS, NAMESPACES, SELF_SUBJECT_ACCESS_REVIEWS
from support.clocks import ManualClock
from support.kube_clients import connected
from support.scripted_server import served


@asynccontextmanager
async def recording(seen: list[dict[str, list[str]]]) -> AsyncIterator[Kube]:
    """A client with a token of its own, whose requests' headers are noted."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append({name: request.headers.getall(name) for name in request.headers})
        return web.json_response({"metadata": {}})

    class Own:
        async def current(self) -> Identity:
            return Identity({"Authorization": "Bearer ours"}, None, "the token")

        async def renew(self, refused: Identity) -> Identity:
            return refused

    async with served(handle) as url:
        connection = Connection(url, "a test", Own())
        async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
            yield kube


async def test_a_callers_token_is_shown_instead_of_ours() -> None:
    seen: list[dict[str, list[str]]] = []
    async with recording(seen) as kube:
        await kube.as_caller("theirs").get(CONFIG_MAPS, ObjectKey("team", "a"))
    assert seen[0]["Authorization"] == ["Bearer theirs"]


async def test_impersonation_names_the_user_and_each_group_beside_our_token() -> None:
    seen: list[dict[str, list[str]]] = []
    async with recording(seen) as kube:
        await kube.impersonating("jane", ("blue", "green")).get(CONFIG_MAPS, ObjectKey("team", "a"))
    assert seen[0]["Authorization"] == ["Bearer ours"]
    assert seen[0]["Impersonate-User"] == ["jane"]
    assert seen[0]["Impersonate-Group"] == ["blue", "green"]


async def test_a_guard_is_asked_before_each_request_and_may_refuse_it() -> None:
    seen: list[dict[str, list[str]]] = []

    async def guard(request: Request) -> None:
        if request.namespace != "team":
            raise Forbidden(request.about, 403, "Forbidden", "not there")

    async with recording(seen) as kube:
        guarded = kube.with_guard(guard)
        await guarded.get(CONFIG_MAPS, ObjectKey("team", "a"))
        with pytest.raises(Forbidden):
            await guarded.get(CONFIG_MAPS, ObjectKey("other", "a"))
    assert len(seen) == 1


async def test_a_name_is_one_segment_of_the_path_whatever_is_in_it() -> None:
    seen: list[dict[str, list[str]]] = []
    paths: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.raw_path)
        return web.json_response({"metadata": {}})

    async with recording(seen) as _, served(handle) as url:
        connection = Connection(url, "a test", (await _anonymous()))
        async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
            await kube.get(CONFIG_MAPS, ObjectKey("team", "a/../../secrets/b?x=1#y"))
    assert paths == ["/api/v1/namespaces/team/configmaps/a%2F..%2F..%2Fsecrets%2Fb%3Fx=1%23y"]


async def _anonymous() -> RenewedCredentials:
    async def read() -> Login:
        return Login()

    return RenewedCredentials("nothing", read, Login(), ManualClock())


async def test_our_client_certificate_is_not_shown_beside_a_callers_token(control_plane: ControlPlane) -> None:
    """The API server looks at certificates first: whoever called would have our rights."""
    connection = await load_connection(control_plane.admin_kubeconfig)
    identity = await connection.credentials.current()
    assert identity.trust is not None
    assert identity.trust is not identity.tls
    async with connected(control_plane.admin_kubeconfig) as kube:
        await kube.list(NAMESPACES)
        with pytest.raises(Unauthorized, match="the token from the request is not accepted by the server"):
            await kube.as_caller("made-up").list(NAMESPACES)


async def test_a_callers_own_rights_decide(control_plane: ControlPlane, namespace: str) -> None:
    token = control_plane.admin.post(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 600}}
    )["status"]["token"]
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    attributes = {"verb": "list", "resource": "configmaps", "namespace": namespace}
    async with connected(control_plane.admin_kubeconfig) as kube:
        caller = kube.as_caller(token)
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await caller.list(CONFIG_MAPS, namespace)
        body = {**review, "spec": {"resourceAttributes": attributes}}
        assert not (await caller.create(SELF_SUBJECT_ACCESS_REVIEWS, body))["status"].get("allowed")
        named = kube.impersonating(f"system:serviceaccount:{namespace}:default")
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await named.list(CONFIG_MAPS, namespace)


async def test_trust_is_the_same_context_where_we_have_no_certificate() -> None:
    async def read() -> Login:
        return Login(tls=TlsMaterial(verify=False))

    known = RenewedCredentials("a file", read, await read(), ManualClock())
    identity = await known.current()
    assert isinstance(identity.tls, ssl.SSLContext)
    assert identity.trust is identity.tls
