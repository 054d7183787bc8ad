"""Requests of V2, passed on to Kubernetes in the rights of the caller, and its answers, passed back as they come."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web
from multidict import CIMultiDict
from prometheus_client import Counter
from yarl import URL

from raykeeper.api.labels import APP_NAME, APP_NAME_KUBERAY
from raykeeper.api.yaml_text import parse_mapping
from raykeeper.apiserver.auth.callers import Authenticator, Caller, bearer_token
from raykeeper.apiserver.errors import CallFailed, Code, Untranslatable
from raykeeper.apiserver.services.compute_templates import read_template
from raykeeper.apiserver.v2.filter import Passed, Refused, passed
from raykeeper.apiserver.v2.templates import KEY, apply_templates, named_templates
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.http.requests import Request
from raykeeper.kube.http.transport import PassedAnswer
from raykeeper.kube.resources import SERVICES
from raykeeper.kube.reviews import check_right
from raykeeper.logs import Log
from raykeeper.web.listener import BODY_BYTES, TooLarge, read_body
from raykeeper.web.passing import (
    Taken,
    end_to_end,
    has_body,
    is_upgrade,
    pass_answer,
    pass_upgrade,
    peer_of,
    request_head,
    say_continue,
)
from raykeeper.web.targets import Target

RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
UNDONE: Final = frozenset({429, 503})
"""Said before anything was done: even a create may be repeated."""
SAFE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
MOST_TRIES: Final = 4
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
RETRY_SECONDS: Final = 30.0
"""All tries of one request end within this; KubeRay's numbers."""
BEGIN_SECONDS: Final = 65.0
"""Until an answer of Kubernetes itself begins; it gives up after 60 and says so."""
YAML: Final = frozenset({"application/yaml", "application/apply-patch+yaml"})
YAML_BYTES: Final = 1 << 20
"""Reading this much takes a second or two; JSON of the same length takes milliseconds."""
MOST_PASSED: Final = 1000
"""Requests under way at once."""
_OWN: Final = frozenset({"host", "expect", "authorization", "content-length"})
_CLAIMS: Final = ("impersonate-", "x-remote-")
"""Headers by which a proxy names somebody else. Only who shows a token of Kubernetes may send them on."""

log = Log("raykeeper.apiserver.v2")


@dataclass
class V2Proxy:
    """Answers what `passed` lets through."""

    kube: Kube
    """With our own rights: for looking whether a Service belongs to Ray."""
    authenticator: Authenticator
    requests: Counter
    """By method and status."""
    passes_tokens: bool = False
    """Whether a bearer token is passed on where nobody has to log in, as KubeRay's server does."""
    _under_way: int = 0

    async def answer(
        self, request: web.BaseRequest, target: Target, granted: Mapping[str, str]
    ) -> web.StreamResponse | None:
        """The answer, with the headers that are `granted` to pages; None for a path that is not about V2."""
        caller = ""
        try:
            wanted = passed(request.method, target)
            if wanted is None:
                return None
            who = await self._caller(request)
            caller = who.name
            response = await self._answer(request, wanted, who, granted)
        except Refused as exc:
            response = status_response(exc.status, exc.reason, str(exc))
        except TooLarge:
            text = f"the body is larger than {BODY_BYTES} bytes"
            response = status_response(413, "RequestEntityTooLarge", text)
        except (CallFailed, ApiError, Unavailable, TimeoutError, ConnectionError) as exc:
            response = _failure(request, exc)
        self.requests.labels(request.method, str(response.status)).inc()
        log.info(
            "request",
            method=request.method,
            path=target.raw_path,
            status=response.status,
            caller=caller,
            peer=peer_of(request),
        )
        return response

    async def _caller(self, request: web.BaseRequest) -> Caller:
        authorization = request.headers.get("Authorization")
        who = await self.authenticator.caller(authorization)
        if self.passes_tokens and (token := bearer_token(authorization)):
            return Caller("token passed on", self.kube.as_caller(token), shows_own_token=True)
        return who

    async def _answer(
        self, request: web.BaseRequest, wanted: Passed, who: Caller, granted: Mapping[str, str]
    ) -> web.StreamResponse:
        if self._under_way >= MOST_PASSED:
            raise Refused(429, "TooManyRequests", "too many requests at once")
        self._under_way += 1
        try:
            if wanted.kind == "service":
                await check_right(who.kube, _sent(request, wanted))  # first: strangers learn of no Service
                await self._check_service(wanted)
                if is_upgrade(request):
                    return await self._upgraded(request, wanted, who)
                return await self._streamed(request, wanted, who, granted)
            return await self._retried(request, wanted, who, granted)
        finally:
            self._under_way -= 1

    async def _check_service(self, wanted: Passed) -> None:
        """Raise `Refused` unless the Service is one of Ray's."""
        labels, fields = {APP_NAME: APP_NAME_KUBERAY}, {"metadata.name": wanted.resource}
        try:
            found = await self.kube.page(SERVICES, wanted.namespace, labels=labels, fields=fields, limit=1)
        except ApiError as exc:
            raise Unavailable("Services of Ray", str(exc)) from exc
        if not found.items:
            raise Refused(404, "NotFound", "kuberay service not found")

    async def _streamed(
        self, request: web.BaseRequest, wanted: Passed, who: Caller, granted: Mapping[str, str]
    ) -> web.StreamResponse:
        """Passed on as it comes, once."""
        body: AsyncIterator[bytes] | None = None
        if has_body(request):
            await say_continue(request)
            body = request.content.iter_any()
        headers = _headers(request, who)
        if request.content_length is not None and body is not None:
            headers["Content-Length"] = str(request.content_length)
        async with who.kube.pass_on(_sent(request, wanted), headers, body) as answer:
            return await _passed_back(request, answer, granted)

    async def _retried(
        self, request: web.BaseRequest, wanted: Passed, who: Caller, granted: Mapping[str, str]
    ) -> web.StreamResponse:
        """Passed on whole, so that it can be sent again when Kubernetes is busy."""
        sent, headers = _sent(request, wanted), _headers(request, who)
        await who.kube.check(sent)  # before a body takes memory
        if _may_create(request):
            await who.kube.check(sent._replace(method="POST"))
        body = await read_body(request) if has_body(request) else None
        if body is not None and wanted.may_have_templates and KEY.encode() in body:
            await check_right(who.kube, sent)  # strangers have nothing parsed
            body = await _with_templates(body, headers, wanted, who.kube)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + RETRY_SECONDS
        for number in range(MOST_TRIES):
            pause = min(FIRST_PAUSE_SECONDS * 2**number, LONGEST_PAUSE_SECONDS) * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load
            async with who.kube.pass_on(sent, headers, body, BEGIN_SECONDS) as answer:
                is_last = number + 1 == MOST_TRIES or loop.time() + pause > ends_at
                if is_last or not _is_retried(request.method, answer):
                    return await _passed_back(request, answer, granted)
            await asyncio.sleep(pause)
        raise AssertionError("the last try has no successor")

    async def _upgraded(self, request: web.BaseRequest, wanted: Passed, who: Caller) -> web.StreamResponse:
        """A connection that becomes another protocol: both ends are joined."""
        reader, writer, identity = await who.kube.connect(_sent(request, wanted))
        headers = _headers(request, who)
        headers["Connection"], headers["Upgrade"] = "Upgrade", request.headers["Upgrade"]
        path = URL(self.kube.connection.server).raw_path.rstrip("/") + wanted.path  # Rancher has a prefix
        writer.write(request_head(request.method, path, [*identity.items(), *headers.items()]))
        return await pass_upgrade(request, reader, writer)


def _sent(request: web.BaseRequest, wanted: Passed) -> Request:
    return Request(request.method, wanted.path, f"{request.method} for a caller of V2")


def _may_create(request: web.BaseRequest) -> bool:
    """Whether a PATCH makes the object if there is none, for which Kubernetes would ask for the right to create."""
    return request.method == "PATCH" and request.content_type.lower().startswith("application/apply-patch+")


def _headers(request: web.BaseRequest, who: Caller) -> CIMultiDict[str]:
    """The caller's headers without those that say who it is."""
    headers = end_to_end(request.headers.items(), without=_OWN)
    if not who.shows_own_token:
        for name in [name for name in headers if name.lower().startswith(_CLAIMS)]:
            headers.popall(name, None)
    return headers


def _is_retried(method: str, answer: PassedAnswer) -> bool:
    return answer.status in RETRIED and (method in SAFE or answer.status in UNDONE)


async def _passed_back(
    request: web.BaseRequest, answer: PassedAnswer, granted: Mapping[str, str]
) -> web.StreamResponse:
    headers = end_to_end(answer.headers.items())
    headers.update(granted)
    return await pass_answer(request, answer.status, headers, answer.pieces)


async def _with_templates(body: bytes, headers: CIMultiDict[str], wanted: Passed, kube: Kube) -> bytes:
    """The body with its compute templates filled in; as it is, where it names none."""
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content_type in YAML and len(body) > YAML_BYTES:
        raise Refused(413, "RequestEntityTooLarge", f"YAML that names compute templates has {YAML_BYTES} bytes at most")
    parsed = await asyncio.to_thread(_parsed, body, content_type)
    names = named_templates(parsed)
    if not names:
        return body
    try:
        templates = {name: await read_template(kube, wanted.namespace, name) for name in names}
        apply_templates(parsed, templates)
    except CallFailed as failure:
        if failure.code not in (Code.NotFound, Code.Unknown):
            raise
        raise Refused(422, "Invalid", str(failure)) from failure
    except Untranslatable as exc:
        raise Refused(422, "Invalid", str(exc)) from exc
    if content_type == "application/yaml":
        headers["Content-Type"] = "application/json"
    return msgspec.json.encode(parsed)


def _parsed(body: bytes, content_type: str) -> Any:
    """An object in JSON or YAML; None for what is neither, which Kubernetes may understand and templates do not."""
    try:
        if content_type in ("", "application/json", "application/merge-patch+json"):
            return msgspec.json.decode(body)
        if content_type in YAML:
            return parse_mapping(body.decode())
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None  # Kubernetes says better what is wrong with it
    return None


def _failure(request: web.BaseRequest, exc: Exception) -> web.StreamResponse:
    """An error of ours as Kubernetes writes them; in the middle of an answer only the connection can end."""
    if request.writer.output_size > 0:
        request.protocol.force_close()
        return Taken()
    if isinstance(exc, CallFailed):
        status, reason = _STATUSES.get(exc.code, (500, "InternalError"))
        return status_response(status, reason, str(exc))
    if isinstance(exc, ApiError):
        return status_response(exc.status, exc.reason, exc.message)
    return status_response(503, "ServiceUnavailable", str(exc) or "no answer in time")


_STATUSES: Final[Mapping[Code, tuple[int, str]]] = {
    Code.Unauthenticated: (401, "Unauthorized"),
    Code.PermissionDenied: (403, "Forbidden"),
    Code.Unavailable: (503, "ServiceUnavailable"),
    Code.ResourceExhausted: (429, "TooManyRequests"),
    Code.NotFound: (404, "NotFound"),
}


def status_response(status: int, reason: str, message: str) -> web.Response:
    """An error as Kubernetes writes it."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    headers = {"X-Content-Type-Options": "nosniff"}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    encoded = msgspec.json.encode(body)
    return web.Response(status=status, body=encoded, content_type="application/json", headers=headers)
