"""ID tokens from an OpenID Connect provider, refreshed as kubectl used to."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from bed.pki import Authority
from raykeeper.errors import Misconfigured
from raykeeper.kube.connect.connection import load_connection
from support.scripted_server import served


def an_id_token(name: str, lives: timedelta) -> str:
    claims = {"sub": name, "exp": (datetime.now(UTC) + lives).timestamp()}
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.signature"


class Provider:
    """An identity provider that hands out a new refresh token with every ID token."""

    def __init__(self) -> None:
        self.url = ""
        self.refresh_token = "first"
        self.id_token = an_id_token("ann", timedelta(hours=1))
        self.requests: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request.path)
        if request.path == "/.well-known/openid-configuration":
            return web.json_response({"token_endpoint": f"{self.url}/token"})
        form = dict(part.split("=") for part in (await request.text()).split("&"))
        wanted = {"grant_type": "refresh_token", "refresh_token": self.refresh_token}
        if form != wanted or request.headers["Authorization"] != "Basic cmF5OnNlY3JldA==":
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.refresh_token = "second"
        return web.json_response({"id_token": self.id_token, "refresh_token": self.refresh_token})


@pytest.fixture
def authority() -> Authority:
    return Authority.create()


@pytest.fixture
async def provider(authority: Authority, tmp_path: Path) -> AsyncIterator[Provider]:
    files = authority.issue("provider", sans=["127.0.0.1"]).write(tmp_path, "provider")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.certificate, files.key)
    provider = Provider()
    async with served(provider.handle, tls) as provider.url:
        yield provider


def a_kubeconfig(folder: Path, provider: Provider, ca: bytes, **changes: str | None) -> Path:
    settings = {
        "idp-issuer-url": provider.url,
        "client-id": "ray",
        "client-secret": "secret",
        "refresh-token": "first",
        "idp-certificate-authority-data": base64.b64encode(ca).decode(),
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example"}}],
        "users": [{"name": "u", "user": {"auth-provider": {"name": "oidc", "config": settings}}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


async def authorization(path: Path) -> str:
    return (await (await load_connection(path, environment={})).credentials.current()).headers["Authorization"]


async def test_a_token_that_still_holds_is_used_without_asking(
    provider: Provider, authority: Authority, tmp_path: Path
) -> None:
    known = an_id_token("bob", timedelta(hours=1))
    path = a_kubeconfig(tmp_path, provider, authority.pair.certificate, id_token=known)
    assert await authorization(path) == f"Bearer {known}"
    assert provider.requests == []


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_expired_or_missing_token_is_refreshed_and_written_back(
    is_known: bool, provider: Provider, authority: Authority, tmp_path: Path
) -> None:
    known = an_id_token("bob", timedelta(seconds=-1)) if is_known else None
    path = a_kubeconfig(tmp_path, provider, authority.pair.certificate, id_token=known)
    assert await authorization(path) == f"Bearer {provider.id_token}"
    written = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (written["id-token"], written["refresh-token"]) == (provider.id_token, "second")
    assert written["client-id"] == "ray"


async def test_a_provider_with_another_ca_is_not_trusted(provider: Provider, tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path, provider, Authority.create("another").pair.certificate)
    with pytest.raises(Misconfigured, match=f"the OIDC provider {provider.url} gives no new token"):
        await authorization(path)
    assert provider.requests == []


async def test_a_refused_refresh_is_told(provider: Provider, authority: Authority, tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path, provider, authority.pair.certificate, refresh_token="stale")
    with pytest.raises(Misconfigured, match="gives no new token"):
        await authorization(path)


async def test_an_expired_token_without_a_refresh_token_asks_for_a_login(
    provider: Provider, authority: Authority, tmp_path: Path
) -> None:
    path = a_kubeconfig(tmp_path, provider, authority.pair.certificate, refresh_token=None)
    with pytest.raises(
        Misconfigured, match="its OIDC id-token has expired and there is no refresh-token; log in again"
    ):
        await authorization(path)
