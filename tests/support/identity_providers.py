"""An identity provider that signs what a test wants, also what no honest one would."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from support.scripted_server import served

CLIENT = "ray-api"
SECRET = "a secret that everybody can read"
SECRET_KEY = base64.urlsafe_b64encode(SECRET.encode()).rstrip(b"=").decode()


@dataclass
class ScriptedProvider:
    """Discovery and keys over HTTP; tokens by hand."""

    url: str = ""
    keys: list[Any] = field(default_factory=lambda: [RSAKey.generate_key(2048, {"kid": "one"})])
    issuer: str = ""
    """What it calls itself; its URL unless set."""
    is_away: bool = False
    is_silent: bool = False
    """Whether answers wait until it `speaks`."""
    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    comes_in_pieces: bool = False
    padding: int = 0
    """Bytes that the keys are longer by."""
    fetched: list[str] = field(default_factory=list)

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        plain = {"iss": self.url, "aud": CLIENT, "sub": "jane", "iat": now, "exp": now + 600}
        return {name: value for name, value in {**plain, **changes}.items() if value is not None}

    def token(self, *, key: Any = None, algorithm: str = "RS256", kid: str | None = "one", **changes: Any) -> str:
        header = {"alg": algorithm, **({"kid": kid} if kid else {})}
        return jwt.encode(header, self.claims(**changes), key or self.keys[0], algorithms=[algorithm])

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.fetched.append(request.path)
        if self.is_silent:
            await self.speaks.wait()
        if self.is_away:
            return web.Response(status=503)
        if request.path == "/.well-known/openid-configuration":
            return web.json_response({"issuer": self.issuer or self.url, "jwks_uri": f"{self.url}/keys"})
        public = KeySet([key for key in self.keys if not isinstance(key, OctKey)]).as_dict()
        secret = [{"kty": "oct", "kid": "secret", "k": SECRET_KEY}]
        odd = [{"kty": "lattice", "kid": "odd"}, {"kty": "RSA", "n": "!"}]
        body = json.dumps({"keys": [*odd, *secret, *public["keys"]]}).encode() + b" " * self.padding
        return await _in_pieces(request, body) if self.comes_in_pieces else web.Response(body=body)


async def _in_pieces(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in (body[:100], body[100:]):
        await response.write(piece)
        await asyncio.sleep(0.05)
    return response


@asynccontextmanager
async def a_provider() -> AsyncIterator[ScriptedProvider]:
    provider = ScriptedProvider()
    async with served(provider.handle) as url:
        provider.url = url
        try:
            yield provider
        finally:
            provider.speaks.set()


@contextmanager
def a_provider_in_a_thread() -> Iterator[ScriptedProvider]:
    """The same for tests that have no event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    context = a_provider()
    try:
        yield asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid})


def elliptic_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid})


def without_signature(claims: dict[str, Any]) -> str:
    """A token of the algorithm `none`."""
    return f"{_part({'alg': 'none', 'kid': 'one'})}.{_part(claims)}."


def signed_by_secret(claims: dict[str, Any], secret: bytes, kid: str) -> str:
    """A token of an algorithm with a shared secret, made by hand: no library signs with a public key as the secret."""
    signed = f"{_part({'alg': 'HS256', 'kid': kid})}.{_part(claims)}"
    return f"{signed}.{_base64url(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _part(content: dict[str, Any]) -> str:
    return _base64url(json.dumps(content).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
