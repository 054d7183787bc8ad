"""Alibaba OSS and its token service (STS) as far as the wire goes, in front of a bucket of MinIO.

Nobody gets in without a role: a token of a pod's service account is shown to the real API server, and every further
request must be signed with the keys that were given out for it.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import hmac
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from email.utils import format_datetime
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

from bed.control_plane import ControlPlane
from bed.faults.loop_thread import LoopThread
from bed.node.settings import NODE_ADDRESS
from bed.rest import Json
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.opening import open_store
from raykeeper.storage.store import ObjectStat, ObjectStore
from support.scripted_server import served

AUDIENCE = "sts.aliyuncs.com"
ACCOUNT = "1234567890"
PROVIDER = f"acs:ram::{ACCOUNT}:oidc-provider/ack-rrsa-c1"
KEYS = {
    "AccessKeyId": "STS.key",
    "AccessKeySecret": "sts-secret",
    "SecurityToken": "sts-token",
    "Expiration": "2099-01-01T00:00:00Z",
}
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_PAGE = 1000


@dataclass
class Wire:
    """What came over it."""

    assumed: list[str] = field(default_factory=list)
    """Whose tokens were good for the role."""
    refused: list[str] = field(default_factory=list)
    """What was turned away, and why."""
    methods: list[str] = field(default_factory=list)
    """Of the requests for objects that were signed as they should."""


class OssOnMinio(LoopThread):
    """One bucket of that name, for whoever may take the role."""

    def __init__(self, plane: ControlPlane, bucket: str, role: str, trusted: str, objects: StoreSettings) -> None:
        """`trusted`: the condition of the role's trust policy, StringLike on `oidc:sub`, as in the documentation."""
        super().__init__()
        self.wire = Wire()
        self.url = ""
        self._plane = plane
        self._bucket = bucket
        self._role = f"acs:ram::{ACCOUNT}:role/{role}"
        self._trusted = trusted
        self._settings = objects
        self._stack = AsyncExitStack()
        self._store: ObjectStore | None = None

    async def _open(self) -> None:
        self._store = open_store(self._settings)
        self.url = await self._stack.enter_async_context(served(self._handle, host=str(NODE_ADDRESS)))

    async def _close(self) -> None:
        await self._stack.aclose()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.query.get("Action") == "AssumeRoleWithOIDC":
            return self._assume_role(request)
        if _signature(request) != request.headers.get("Authorization"):
            return self._refuse(request, 403, "SignatureDoesNotMatch")
        if request.headers.get("x-oss-security-token") != KEYS["SecurityToken"]:
            return self._refuse(request, 403, "InvalidSecurityToken")
        bucket, _, key = unquote(request.raw_path.partition("?")[0]).removeprefix("/").partition("/")
        if bucket != self._bucket:
            return self._refuse(request, 404, "NoSuchBucket")
        try:
            answer = await self._answer(request, key)
        except ObjectMissing:
            answer = _error(404, "NoSuchKey")
        if answer is None:
            return self._refuse(request, 501, "NotImplemented")
        self.wire.methods.append(request.method)
        return answer

    def _assume_role(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        asked = (query.get("RoleArn"), query.get("OIDCProviderArn"))
        review: Json = {"spec": {"token": query.get("OIDCToken", ""), "audiences": [AUDIENCE]}}
        status = self._plane.admin.post("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        user = status.get("user", {}).get("username", "nobody")
        if asked != (self._role, PROVIDER) or not fnmatch.fnmatch(user, self._trusted):
            self.wire.refused.append(f"{user} as {asked}: {status.get('error')}")
            return web.json_response({"Code": "AuthenticationFail.NoPermission", "Message": "no"}, status=403)
        self.wire.assumed.append(user)
        return web.json_response({"Credentials": KEYS})

    async def _answer(self, request: web.BaseRequest, key: str) -> web.Response | None:
        """None where the real one could do it and this one cannot."""
        assert self._store is not None
        if not key:
            return await self._list(self._store, request) if request.method == "GET" else None
        if request.method == "PUT" and not request.query_string:
            return await _put(self._store, request, key)
        if request.method == "GET":
            return await _get(self._store, request, key)
        if request.method == "HEAD":
            return web.Response(headers=_headers(await self._store.stat(key)))
        if request.method == "DELETE":
            await self._store.delete(key)
            return web.Response(status=204)
        return None

    async def _list(self, store: ObjectStore, request: web.BaseRequest) -> web.Response:
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        after = request.query.get("continuation-token") or request.query.get("start-after", "")
        objects, folders, last = [], dict[str, None](), ""
        async for found in _listed(store, prefix, after):
            rest = found.key.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                objects.append(found)
            last = found.key
            if len(objects) == _PAGE:
                break
        is_cut = len(objects) == _PAGE
        return web.Response(
            text=_listing(self._bucket, objects, folders, last if is_cut else ""), content_type="text/xml"
        )

    def _refuse(self, request: web.BaseRequest, status: int, code: str) -> web.Response:
        self.wire.refused.append(f"{request.method} {request.raw_path}: {code}")
        return _error(status, code)


async def _listed(store: ObjectStore, prefix: str, after: str) -> AsyncIterator[ObjectStat]:
    folder = prefix[: prefix.rfind("/") + 1]
    async for found in store.list(folder):
        if found.key.startswith(prefix) and found.key > after:
            yield found


async def _put(store: ObjectStore, request: web.BaseRequest, key: str) -> web.Response:
    body = await request.content.read()
    if request.headers.get("x-oss-forbid-overwrite") == "true":
        if not await store.create(key, body):
            return _error(409, "FileAlreadyExists")
    else:
        await store.put(key, body)
    return web.Response(headers={"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest().upper()}"'})


async def _get(store: ObjectStore, request: web.BaseRequest, key: str) -> web.Response:
    stat = await store.stat(key)
    asked = _RANGE.fullmatch(request.headers.get("Range", ""))
    if asked is None:
        return web.Response(body=await store.get(key), headers=_headers(stat, with_length=False))
    first = int(asked[1])
    last = min(int(asked[2]) if asked[2] else stat.size, stat.size - 1)
    if first > last:
        return _error(416, "InvalidRange")
    body = await store.read_range(key, first, last - first + 1)
    headers = {**_headers(stat, with_length=False), "Content-Range": f"bytes {first}-{last}/{stat.size}"}
    return web.Response(status=206, body=body, headers=headers)


def _headers(stat: ObjectStat, *, with_length: bool = True) -> dict[str, str]:
    times = {"Last-Modified": format_datetime(stat.modified, usegmt=True), "ETag": '"etag"'}
    return {**times, **({"Content-Length": str(stat.size)} if with_length else {})}


def _listing(bucket: str, objects: list[ObjectStat], folders: dict[str, None], token: str) -> str:
    contents = "".join(
        f"<Contents><Key>{escape(one.key)}</Key><LastModified>{one.modified:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
        f'<ETag>"etag"</ETag><Size>{one.size}</Size></Contents>'
        for one in objects
    )
    prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders)
    more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>{bucket}</Name>'
        f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{more}{contents}{prefixes}</ListBucketResult>"
    )


def _signature(request: web.BaseRequest) -> str:
    """The header that OSS expects by its documentation (signature version 1, path style)."""
    names = sorted(name.lower() for name in request.headers if name.lower().startswith("x-oss-"))
    headers = "".join(f"{name}:{request.headers[name]}\n" for name in names)
    parts = [request.method, "", request.headers.get("Content-Type", ""), request.headers.get("Date", "")]
    signed = {name: value for name, value in request.query.items() if name in _SIGNED_PARAMETERS}
    resource = unquote(request.raw_path.partition("?")[0])
    if signed:
        resource += "?" + "&".join(f"{name}={value}" for name, value in sorted(signed.items()))
    text = "\n".join(parts) + f"\n{headers}{resource}"
    digest = hmac.new(KEYS["AccessKeySecret"].encode(), text.encode(), hashlib.sha1).digest()
    return f"OSS {KEYS['AccessKeyId']}:{base64.b64encode(digest).decode()}"


_SIGNED_PARAMETERS = ("continuation-token", "uploads", "uploadId", "partNumber")


def _error(status: int, code: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>so it is</Message></Error>'
    return web.Response(status=status, text=text, content_type="application/xml")
