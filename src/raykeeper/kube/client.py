"""`Kube`: every verb of the Kubernetes API, for any kind."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Self, TypeVar

import msgspec
from multidict import CIMultiDict

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.connect.callers import CallerToken, Impersonation
from raykeeper.kube.connect.connection import Connection
from raykeeper.kube.errors import NotFound
from raykeeper.kube.http import requests
from raykeeper.kube.http.answers import Answer
from raykeeper.kube.http.decoding import Page, decode_one, decode_page
from raykeeper.kube.http.fencedbody import Fence
from raykeeper.kube.http.ratelimit import RateLimiter
from raykeeper.kube.http.requests import Propagation, Query, Request, Selector
from raykeeper.kube.http.slots import own_connections, shared_connections
from raykeeper.kube.http.transport import Body, Guard, Lane, PassedAnswer, Transport
from raykeeper.kube.http.unanswered import PATIENCE, Patience
from raykeeper.kube.metrics import KubeMetrics

T = TypeVar("T")
R = TypeVar("R")

PAGE_SIZE = 500
"""Objects per page; client-go's number, about 4 MB of Ray pods."""


USER_AGENT = f"raykeeper/{version('raykeeper')}"
"""The part before the slash becomes the field manager of writes that name none."""


class Kube:
    """A client of one API server. Use as `async with Kube(connection, metrics=metrics) as kube`.

    Raises the classes of `kube.errors` for refusals, `Unavailable` where no answer can be had, and nothing else.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        metrics: KubeMetrics,
        qps: float = 500.0,
        burst: int = 1000,
        clock: Clock | None = None,
        user_agent: str = USER_AGENT,
        patience: Patience = PATIENCE,
    ) -> None:
        self._clock = clock or SystemClock()
        self._transport = Transport(connection, metrics, self._clock, user_agent, patience)
        self._lane = Lane(RateLimiter(qps, burst, self._clock), shared_connections(self._clock))

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    @property
    def connection(self) -> Connection:
        return self._transport.connection

    @property
    def shows_caller(self) -> bool:
        """Whether Kubernetes sees somebody else in our requests than us."""
        return self._lane.credentials is not None

    def with_fence(self, fence: Fence) -> Kube:
        """A view whose writes are each checked against the fence just before they are sent."""
        return self._view(replace(self._lane, fence=fence))

    def with_budget(self, qps: float, burst: int, *, connections: int = 2, share: int | None = None) -> Kube:
        """A view with a rate limit and connections of its own: it neither waits for other requests nor delays them.

        One namespace takes `share` of the connections at most, or all.
        """
        own = own_connections(connections, share or connections, self._clock)
        return self._view(replace(self._lane, limiter=RateLimiter(qps, burst, self._clock), connections=own))

    def as_caller(self, token: str) -> Kube:
        """A view whose requests show this token and nothing of ours: the API server decides what its owner may do."""
        return self._view(replace(self._lane, credentials=CallerToken(self.connection.credentials, token)))

    def impersonating(self, user: str, groups: Sequence[str] = ()) -> Kube:
        """A view whose requests are made in somebody's name; our own credentials must be allowed to do that."""
        named = Impersonation(self.connection.credentials, user, tuple(groups))
        return self._view(replace(self._lane, credentials=named))

    def with_guard(self, guard: Guard) -> Kube:
        """A view whose requests are each let pass by the guard, or raise what it raises."""
        return self._view(replace(self._lane, guard=guard))

    def ensure_writable(self) -> None:
        """Raise `NotLeading` unless this client may write now: for writes to other servers in the same name."""
        if self._lane.fence is not None:
            self._lane.fence.check()

    def _view(self, lane: Lane) -> Kube:
        view = object.__new__(Kube)
        view._clock, view._transport, view._lane = self._clock, self._transport, lane
        return view

    async def get(self, resource: Resource[T], key: ObjectKey) -> T:
        """The object as it is now. Raises `NotFound`."""
        return self._one(resource, await self.send(requests.read_one(resource, key)))

    async def find(self, resource: Resource[T], key: ObjectKey) -> T | None:
        """The object, or None where there is none."""
        try:
            return await self.get(resource, key)
        except NotFound:
            return None

    async def page(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int | None = PAGE_SIZE,
        token: str | None = None,
        resource_version: str | None = None,
    ) -> Page[T]:
        """One page of a list, of all namespaces where none is named. Raises `Expired` for a token that is too old."""
        request = requests.read_page(
            resource,
            namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            token=token,
            resource_version=resource_version,
        )
        return self._decoded(decode_page, resource, await self.send(request))

    async def pages(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int | None = PAGE_SIZE,
        resource_version: str | None = None,
    ) -> AsyncGenerator[Page[T], None]:
        """All pages of one consistent list."""
        token: str | None = None
        while token != "":
            page = await self.page(
                resource,
                namespace,
                labels=labels,
                fields=fields,
                limit=limit,
                token=token,
                resource_version=resource_version,
            )
            yield page
            token = page.token

    async def list(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
    ) -> builtins.list[T]:
        """All objects that match, read page by page."""
        pages = self.pages(resource, namespace, labels=labels, fields=fields)
        return [item async for page in pages for item in page.items]

    async def create(
        self,
        resource: Resource[T],
        body: JSON,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> T:
        """The object as the server made it. Raises `AlreadyExists`."""
        request = requests.create(resource, body, namespace, requests.write_query(dry_run, field_manager))
        return self._one(resource, await self.send(request))

    async def replace(
        self,
        resource: Resource[T],
        body: JSON,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> T:
        """The object after it was overwritten. Raises `Conflict` where the body's resourceVersion is not the latest."""
        request = requests.replace(resource, body, subresource, requests.write_query(dry_run, field_manager))
        return self._one(resource, await self.send(request))

    async def merge_patch(
        self,
        resource: Resource[T],
        key: ObjectKey,
        patch: JSON,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> T:
        """The object after the patch; None removes a field. A resourceVersion in the patch makes it conditional."""
        query = requests.write_query(dry_run, field_manager)
        return self._one(resource, await self.send(requests.merge_patch(resource, key, patch, subresource, query)))

    async def json_patch(
        self,
        resource: Resource[T],
        key: ObjectKey,
        operations: Sequence[JSON],
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> T:
        """The object after all operations; a failed `test` operation raises `Invalid` and changes nothing."""
        query = requests.write_query(dry_run, field_manager)
        return self._one(resource, await self.send(requests.json_patch(resource, key, operations, subresource, query)))

    async def apply(
        self,
        resource: Resource[T],
        body: JSON,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """The object after server-side apply. Raises `Conflict` where another manager owns a field, unless forced."""
        query = {**requests.write_query(dry_run, field_manager), "force": force or None}
        return self._one(resource, await self.send(requests.apply(resource, body, subresource, query)))

    async def delete(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask for the object's end. Raises `NotFound`, and `Conflict` where uid or resource version is another."""
        options = requests.delete_options(uid, resource_version, propagation, grace_seconds)
        await self.send(requests.delete(resource, key, options))

    async def delete_collection(
        self,
        resource: Resource[Any],
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask for the end of all objects that match."""
        options = requests.delete_options(propagation=propagation, grace_seconds=grace_seconds)
        await self.send(requests.delete_collection(resource, namespace, labels, fields, options))

    async def subresource(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        name: str,
        *,
        body: JSON | None = None,
        query: Query | None = None,
    ) -> bytes:
        """The raw answer of a subresource such as pods/log, pods/eviction, serviceaccounts/token; POST with a body."""
        return (await self.send(requests.subresource(resource, key, name, body, query or {}))).body

    async def stream(self, path: str, params: Query, *, silence: float) -> AsyncGenerator[bytes, None]:
        """The body of a watch or a followed log as it arrives, to its regular end. An empty first piece says: granted.

        Raises `Unavailable` when nothing came for `silence` seconds. Leaving early needs `aclose`.
        """
        request = Request("GET", requests.with_query(path, params), f"stream {path}")
        async with contextlib.aclosing(self._transport.stream(request, self._lane, silence)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def send(self, request: Request) -> Answer:
        """The answer to a request for which there is no verb here; refusals raise as everywhere."""
        return await self._transport.send(request, self._lane)

    async def relay(self, request: Request) -> Answer:
        """The answer of a server that the API server only passes requests on to, whatever its status."""
        return await self._transport.relay(request, self._lane)

    def pass_on(
        self, request: Request, headers: Mapping[str, str], body: Body | None = None, silence: float | None = None
    ) -> contextlib.AbstractAsyncContextManager[PassedAnswer]:
        """The answer to a request that is passed on for somebody, whatever its status, before its body is read.

        It may take `silence` seconds to begin.
        """
        return self._transport.pass_on(request, self._lane, headers, body, silence)

    async def check(self, request: Request) -> None:
        """Raise as this request would if its guard does not let it pass; nothing is sent."""
        await self._transport.check(request, self._lane)

    async def connect(self, request: Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, CIMultiDict[str]]:
        """A bare connection for a request that asks for another protocol, and the headers that say who asks."""
        return await self._transport.connect(request, self._lane)

    def _one(self, resource: Resource[T], answer: Answer) -> T:
        return self._decoded(decode_one, resource, answer)

    def _decoded(self, decode: Callable[[Resource[T], bytes], R], resource: Resource[T], answer: Answer) -> R:
        try:
            return decode(resource, answer.body)
        except msgspec.DecodeError as exc:
            raise Unavailable(self._transport.service, f"an answer about {resource} cannot be read ({exc})") from exc
