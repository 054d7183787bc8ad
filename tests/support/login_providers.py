"""An identity provider that people sign in at, in a test's own words; and one that speaks as Alibaba's RAM does."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from aiohttp import web
from joserfc.jwk import RSAKey
from starlette.types import ASGIApp

from support.asking import Answered, ask
from support.identity_providers import CLIENT, ScriptedProvider, new_key
from support.scripted_server import served

SECRET = "the-secret-of-our-client"


@cache
def _first_key() -> RSAKey:
    """One for all tests: it takes half a second to make."""
    return new_key("one")


@dataclass
class LoginProvider(ScriptedProvider):
    """Discovery, keys, the token endpoint and its friends over HTTP. Whoever is sent to it signs in as `person`."""

    keys: list[Any] = field(default_factory=lambda: [_first_key()])
    now: Callable[[], float] = time.time
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "jane", "name": "Jane"})
    says_issuer: bool = True
    """By the parameter `iss` of RFC 9207."""
    gives_refresh_token: bool = True
    changes: dict[str, Any] = field(default_factory=dict)
    """In claims of the next ID tokens."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refresh_tokens: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    """Forms that the token endpoint got."""
    is_away_for_tokens: bool = False
    odd_answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """By path, instead of what it would say."""
    needed_secret: str = SECRET
    """Of the client; empty for one that has none."""

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(self.now())
        return super().claims(**{"iat": now, "exp": now + 600, **changes})

    def sign_in(self, address: str, **changes: str) -> str:
        """Where the browser is sent back to, after somebody signed in at this address."""
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.url}{self.paths['auth']}?"), address
        assert parameters["client_id"] == CLIENT
        assert parameters["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = parameters
        said = {"code": code, "state": parameters["state"], **({"iss": self.url} if self.says_issuer else {})}
        return f"{parameters['redirect_uri']}?{urlencode({**said, **changes})}"

    @property
    def paths(self) -> dict[str, str]:
        return {"auth": "/auth", "token": "/token", "end": "/end", "revoke": "/revoke", "keys": "/keys"}

    def description(self) -> dict[str, Any]:
        endpoints = {
            "authorization_endpoint": "auth",
            "token_endpoint": "token",
            "end_session_endpoint": "end",
            "revocation_endpoint": "revoke",
            "jwks_uri": "keys",
        }
        found: dict[str, Any] = {name: f"{self.url}{self.paths[path]}" for name, path in endpoints.items()}
        found |= {"issuer": self.issuer or self.url, "scopes_supported": ["openid", "offline_access"]}
        return found | {"authorization_response_iss_parameter_supported": self.says_issuer}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in self.odd_answers:
            status, body = self.odd_answers[request.path]
            return web.Response(status=status, body=body)
        if request.path == "/.well-known/openid-configuration" and not self.is_away:
            return web.json_response(self.description())
        if request.path == self.paths["auth"]:  # where somebody is signed in already, and is asked nothing
            return web.Response(status=302, headers={"Location": self.sign_in(f"{self.url}{request.path_qs}")})
        if request.path in (self.paths["token"], self.paths["revoke"]) and not self.is_away:
            form = {name: str(value) for name, value in (await request.post()).items()}
            return self._answer(request.path, form)
        return await super().handle(request)

    def _answer(self, path: str, form: dict[str, str]) -> web.Response:
        self.asked.append(form)
        if self.is_away_for_tokens:
            return web.Response(status=503)
        if path == self.paths["revoke"]:
            self.refresh_tokens.discard(form["token"])
            return web.Response()
        if (form.get("client_id"), form.get("client_secret", "")) != (CLIENT, self.needed_secret):
            return _refused("invalid_client", 401)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens:
                return _refused("invalid_grant")
            self.refresh_tokens.discard(form["refresh_token"])
            return self._tokens({})
        began = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if began is None or began["code_challenge"] != challenge.decode():
            return _refused("invalid_grant")
        if began["redirect_uri"] != form["redirect_uri"]:
            return _refused("invalid_grant")
        return self._tokens({"nonce": began["nonce"]})

    def _tokens(self, claims: dict[str, Any]) -> web.Response:
        tokens: dict[str, Any] = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 3600}
        tokens["id_token"] = self.token(**{**self.person, **claims, **self.changes})
        if self.gives_refresh_token:
            tokens["refresh_token"] = secrets.token_urlsafe(16)
            self.refresh_tokens.add(tokens["refresh_token"])
        return web.json_response(tokens)


def _refused(code: str, status: int = 400) -> web.Response:
    body = {"error": code, "error_description": "what was sent is repeated here", "request_id": "R-1"}
    return web.json_response(body, status=status)


@dataclass
class RamProvider(LoginProvider):
    """As Alibaba's RAM writes it: its paths, its claims, numbers as text, no nonce, no `iss` beside the code."""

    says_issuer: bool = False
    person: dict[str, Any] = field(
        default_factory=lambda: {
            "sub": "1234567890123456-of-this-app",
            "aid": "1000000000000001",
            "uid": "2000000000000002",
            "name": "alice",
            "upn": "alice@demo.onaliyun.com",
            "type": "user",
        }
    )

    @property
    def paths(self) -> dict[str, str]:
        return {"auth": "/oauth2/v1/auth", "token": "/v1/token", "end": "", "revoke": "/v1/revoke", "keys": "/v1/keys"}

    def description(self) -> dict[str, Any]:
        found = super().description()
        del found["end_session_endpoint"], found["authorization_response_iss_parameter_supported"]
        return found | {
            "scopes_supported": ["openid", "aliuid", "profile"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _tokens(self, claims: dict[str, Any]) -> web.Response:
        answered = super()._tokens({})  # what it knows of a nonce it keeps to itself
        tokens = json.loads(answered.text or "{}") | {"expires_in": "3600"}
        return web.json_response(tokens)


@asynccontextmanager
async def a_login_provider(kind: type[LoginProvider] = LoginProvider) -> AsyncIterator[LoginProvider]:
    provider = kind()
    async with served(provider.handle) as url:
        provider.url = url
        yield provider


@dataclass
class Browser:
    """Keeps cookies and goes where it is sent, as far as this server goes."""

    app: ASGIApp
    host: str = "history"
    cookies: dict[str, str] = field(default_factory=dict)
    set_cookies: list[str] = field(default_factory=list)

    async def get(self, path: str, **headers: str) -> Answered:
        return await self.send("GET", path, b"", **headers)

    async def send(self, method: str, path: str, body: bytes = b"", /, **headers: str) -> Answered:
        shown = {
            "Host": self.host,
            "Accept": "text/html",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        if self.cookies:
            shown["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answered = await ask(self.app, path, method=method, headers=shown, body=body)
        for line in answered.all_of("set-cookie"):
            self.set_cookies.append(line)
            for name, cookie in SimpleCookie(line).items():
                if cookie["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = cookie.value
        return answered

    async def begin(self, next_path: str = "/sessions") -> str:
        """The address at the provider to which a login leads."""
        answered = await self.get(f"/login/start?next={next_path}")
        assert answered.status == 303, answered.text
        return answered.headers["location"]

    async def sign_in(self, provider: LoginProvider, next_path: str = "/sessions") -> Answered:
        """What the server says to the browser that comes back from the provider."""
        return await self.get(path_of(provider.sign_in(await self.begin(next_path))))


def path_of(address: str) -> str:
    url = urlsplit(address)
    return f"{url.path}?{url.query}" if url.query else url.path
