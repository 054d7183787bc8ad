"""Alibaba OSS by what goes over the wire: signature, create-only header, and the role of a pod's service account."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest
from aiohttp import web

from raykeeper.storage.errors import StoreUnavailable
from raykeeper.storage.opening import open_store
from raykeeper.storage.patience import Patience
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.store import ObjectStore
from support.scripted_server import served

KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "a-key", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "its-secret"}
STS_KEYS = {
    "AccessKeyId": "STS.key",
    "AccessKeySecret": "sts-secret",
    "SecurityToken": "sts-token",
    "Expiration": "2099-01-01T00:00:00Z",
}


@dataclass
class Oss:
    """A server that keeps objects and notes requests; it also is the token service."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[web.BaseRequest] = field(default_factory=list)
    roles_are_refused: bool = False

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        if request.query.get("Action") == "AssumeRoleWithOIDC":
            return self._assume_role()
        key = unquote(request.raw_path)
        if request.method == "PUT":
            if key in self.objects and request.headers.get("x-oss-forbid-overwrite") == "true":
                return _error(409, "FileAlreadyExists")
            self.objects[key] = await request.content.read()
            return web.Response(headers={"ETag": '"etag"'})
        return web.Response(body=self.objects[key]) if key in self.objects else _error(404, "NoSuchKey")

    def _assume_role(self) -> web.Response:
        if self.roles_are_refused:
            return web.json_response({"Code": "AuthenticationFail.NoPermission", "Message": "no"}, status=403)
        return web.json_response({"Credentials": STS_KEYS})

    def environment(self, **more: str) -> dict[str, str]:
        return {**more, "OSS_BUCKET": "history", "OSS_ENDPOINT": self.url, "OSS_REGION": "cn-hangzhou"}

    def open(self, **more: str) -> ObjectStore:
        patience = Patience(attempts=2, longest_pause_seconds=0.05)
        return open_store(read_store_settings("aliyunoss", "root", self.environment(**more)), patience)


def _error(status: int, code: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>so it is</Message></Error>'
    return web.Response(status=status, text=text, content_type="application/xml")


@pytest.fixture
async def oss() -> AsyncIterator[Oss]:
    server = Oss()
    async with served(server.handle) as server.url:
        yield server


def signature(request: web.BaseRequest, secret: str) -> str:
    """What OSS expects of a request by its documentation (signature version 1)."""
    names = sorted(name.lower() for name in request.headers if name.lower().startswith("x-oss-"))
    headers = "".join(f"{name}:{request.headers[name]}\n" for name in names)
    parts = [request.method, "", request.headers.get("Content-Type", ""), request.headers["Date"]]
    text = "\n".join(parts) + f"\n{headers}{unquote(request.raw_path)}"
    return base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha1).digest()).decode()


async def test_requests_are_signed_with_the_keys(oss: Oss) -> None:
    store = oss.open(**KEYS)
    await store.put("a/b~c%20d.json", b"content")
    assert await store.get("a/b~c%20d.json") == b"content"
    assert list(oss.objects) == ["/history/root/a/b~c%20d.json"]
    for request in oss.requests:
        assert request.headers["Authorization"] == f"OSS a-key:{signature(request, 'its-secret')}"


async def test_an_object_is_created_only_once(oss: Oss) -> None:
    store = oss.open(**KEYS)
    assert await store.create("manifests/1.json", b"first") is True
    assert await store.create("manifests/1.json", b"second") is False
    assert await store.get("manifests/1.json") == b"first"
    assert [request.headers.get("x-oss-forbid-overwrite") for request in oss.requests] == ["true", "true", None]


@pytest.fixture
def pod_with_role(oss: Oss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Oss:
    """The store seen from a pod with RRSA, whose variables Alibaba's webhook has set."""
    (tmp_path / "token").write_text("token-of-the-pod")
    monkeypatch.setenv("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/history")
    monkeypatch.setenv("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/ack")
    monkeypatch.setenv("ALIBABA_CLOUD_OIDC_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("ALIBABA_CLOUD_STS_ENDPOINT", oss.url)
    return oss


async def test_a_pod_takes_the_role_of_its_service_account(pod_with_role: Oss) -> None:
    store = pod_with_role.open(**os.environ)
    await store.put("a", b"content")
    await store.put("b", b"content")
    assumed, *writes = pod_with_role.requests
    assert assumed.query["RoleArn"] == "acs:ram::1:role/history"
    assert assumed.query["OIDCProviderArn"] == "acs:ram::1:oidc-provider/ack"
    assert assumed.query["OIDCToken"] == "token-of-the-pod"
    assert len(writes) == 2  # one token serves until it ends
    for request in writes:
        assert request.headers["x-oss-security-token"] == "sts-token"
        assert request.headers["Authorization"] == f"OSS STS.key:{signature(request, 'sts-secret')}"


async def test_a_refused_role_is_told_without_the_token(pod_with_role: Oss) -> None:
    pod_with_role.roles_are_refused = True
    with pytest.raises(StoreUnavailable, match=r"oss://history/root.*'a'.*no credentials could be had") as failed:
        await pod_with_role.open(**os.environ).put("a", b"content")
    assert "token-of-the-pod" not in str(failed.value)
