"""The Ray heads of clusters, reached in the rights of the caller."""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from raykeeper.api import names
from raykeeper.api.containers import AUTH_TOKEN_KEY, DASHBOARD_PORT, DASHBOARD_PORT_NAME
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.syntax import is_dns_1123_label
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.http.requests import Request
from raykeeper.kube.proxied import Backend, ask
from raykeeper.kube.resources import SECRETS
from raykeeper.kube.reviews import check_right
from raykeeper.ray.credentials import Credentials, NoToken, StaticToken
from raykeeper.ray.dashboard import MIB, WANTS_ANOTHER_TOKEN, Answer, Dashboard, Limits
from raykeeper.ray.errors import OversizedAnswer, RayRefused
from raykeeper.ray.exchange import Outgoing
from raykeeper.ray.heads import Head

LIMITS: Final = Limits(connect_seconds=3.0, answer_seconds=20.0, body_bytes=64 * MIB)
"""A log comes as one answer. KubeRay gives up after two seconds, and so never has a long one."""


@dataclass(frozen=True)
class Heads:
    """Makes clients of heads."""

    cluster_domain: str
    is_proxied: bool
    """Whether heads are reached through the API server, as the caller."""

    async def of(self, kube: Kube, cluster: JSON) -> Head:
        """The dashboard of a cluster. Raises `Unavailable` while its token cannot be read."""
        parsed = msgspec.convert(cluster, RayCluster)
        service = ObjectKey(parsed.metadata.namespace, _service_name(parsed))
        backend = Backend("services", service, DASHBOARD_PORT_NAME)
        credentials = await _credentials(kube, parsed)
        if self.is_proxied:
            return ProxiedHead(kube, backend, credentials)
        host = names.head_service_fqdn(parsed, self.cluster_domain)
        return CheckedHead(kube, backend, Dashboard(f"{host}:{_port(cluster)}", credentials, LIMITS))


def _service_name(cluster: RayCluster) -> str:
    """The head's Service, which its user may name: a name with dots or slashes in it would lead to another host."""
    name = names.head_service_name(cluster)
    if not is_dns_1123_label(name):
        raise CallFailed(Code.FailedPrecondition, f"headService.metadata.name {name[:100]!r} cannot name a Service")
    return name


def _port(cluster: JSON) -> int:
    """The dashboard's port by the operator's own words, else Ray's."""
    endpoints = (cluster.get("status") or {}).get("endpoints") or {}
    text = str(endpoints.get(DASHBOARD_PORT_NAME, ""))
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else DASHBOARD_PORT


async def _credentials(kube: Kube, cluster: RayCluster) -> Credentials:
    options = cluster.spec.auth_options
    if options is None or options.mode != "token" or options.enable_k8s_token_auth:
        return NoToken()
    key = ObjectKey(cluster.metadata.namespace, names.auth_secret_name(cluster))
    try:
        secret = await kube.get(SECRETS, key)
        token = base64.b64decode((secret.get("data") or {})[AUTH_TOKEN_KEY]).decode("ascii").strip()
    except (KeyError, binascii.Error, UnicodeDecodeError) as exc:
        raise Unavailable(f"Secret {key}", f"it has no readable {AUTH_TOKEN_KEY}") from exc
    return StaticToken(token)


class CheckedHead:
    """A head that we reach ourselves, for those who might reach it through the API server: the head asks nobody."""

    def __init__(self, kube: Kube, backend: Backend, head: Head) -> None:
        self._kube = kube
        self._backend = backend
        self._head = head
        self.service = head.service

    async def get(self, path: str) -> Answer:
        await self._check("GET", path)
        return await self._head.get(path)

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        await self._check(method, path)
        return await self._head.send(method, path, body)

    async def _check(self, method: str, path: str) -> None:
        plain = path.partition("?")[0]
        await check_right(self._kube, Request(method, self._backend.path(plain), f"{method} {plain} of {self.service}"))


class ProxiedHead:
    """A head that the API server passes requests on to."""

    def __init__(self, kube: Kube, backend: Backend, credentials: Credentials) -> None:
        self._kube = kube
        self._backend = backend
        self._credentials = credentials
        self.service = f"Ray head {backend} by way of the API server"

    async def get(self, path: str) -> Answer:
        return await self._answer(Outgoing(path))

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        return await self._answer(Outgoing(path, method, body))

    async def _answer(self, outgoing: Outgoing) -> Answer:
        plain, _, query = outgoing.path.partition("?")
        # `Authorization` is for the API server; Ray takes the other spelling as well.
        headers = {name: text for name, text in self._credentials.headers().items() if name != "Authorization"}
        try:
            async with asyncio.timeout(LIMITS.connect_seconds + LIMITS.answer_seconds):
                answer = await ask(
                    self._kube,
                    self._backend,
                    plain,
                    method=outgoing.method,
                    query=dict(parse_qsl(query)),
                    body=None if outgoing.method == "GET" else outgoing.body,
                    headers=headers,
                )
        except TimeoutError as exc:
            raise Unavailable(self.service, f"no answer to {plain} in time") from exc
        except ApiError as exc:
            if exc.status in WANTS_ANOTHER_TOKEN:
                raise
            raise Unavailable(self.service, str(exc)) from exc
        if answer.status in WANTS_ANOTHER_TOKEN:
            raise RayRefused(self.service, answer.status)
        if len(answer.body) > LIMITS.body_bytes:
            raise OversizedAnswer(self.service, plain, LIMITS.body_bytes)
        return Answer(answer.status, answer.body, answer.headers.get("Content-Type", ""))
