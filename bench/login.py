"""What it costs a request to find out who asks and what they may see."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, cast

from starlette.requests import HTTPConnection

from bench.figures import Figure
from raykeeper.clock import SystemClock
from raykeeper.history.access_rules import AccessRules, parse_namespace_map
from raykeeper.history.http.access.people import People
from raykeeper.history.http.access.reviews import KubernetesTokens, NamespaceReviews
from raykeeper.history.http.access.sealing import Sealer
from raykeeper.history.http.access.sign_in import SESSION_COOKIE, SignIn
from raykeeper.history.settings import LoginSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.reviews import TokenReviews
from raykeeper.oidc.settings import OidcSettings
from support.identity_providers import CLIENT
from support.login_providers import SECRET, Browser, LoginProvider, a_login_provider

REQUESTS = 5_000
NAMESPACES = 1_000
BAR_MS = 0.3


class Reviewer:
    """Kubernetes' part, without its time: every answer is remembered for ten seconds."""

    async def create(self, _: object, body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] == "TokenReview":
            return {"status": {"authenticated": True, "user": {"username": "jane", "groups": ["team-1"]}}}
        namespace = body["spec"]["resourceAttributes"].get("namespace", "")
        return {"status": {"allowed": namespace.endswith("1")}}


def run() -> Iterator[Figure]:
    """The check of a session cookie, an ID token and a token of Kubernetes, warm, in a store of 1,000 namespaces."""
    for what, milliseconds in asyncio.run(_measured()).items():
        yield Figure(f"login check by {what}, p95", milliseconds, "ms", BAR_MS)


async def _measured() -> dict[str, float]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(a_login_provider())
        sign_in = _sign_in(provider)
        cookie = await _signed_in(sign_in, provider)
        shown = {
            "session cookie": ("cookie", f"{SESSION_COOKIE}={cookie}"),
            "ID token": ("authorization", f"Bearer {provider.token(sub='jane')}"),
            "token of Kubernetes": ("authorization", "Bearer of-kubernetes"),
        }
        return {what: await _p95(sign_in, *header) for what, header in shown.items()}


def _sign_in(provider: LoginProvider) -> SignIn:
    clock, kube = SystemClock(), cast(Kube, Reviewer())
    groups = {f"team-{number}": [f"namespace-{number}"] for number in range(NAMESPACES)}
    rules = AccessRules(namespaces=parse_namespace_map({"groups": groups, "users": {"jane": ["namespace-0"]}}))
    oidc = OidcSettings(provider.url, CLIENT, username_prefix="-", groups_claim="groups")
    login = LoginSettings("http://history", oidc, SECRET, rules=rules)
    people = People("oidc", login, clock)

    async def namespaces() -> frozenset[str]:
        return frozenset(f"namespace-{number}" for number in range(NAMESPACES))

    tokens = KubernetesTokens(TokenReviews(kube, clock), NamespaceReviews(kube, clock, namespaces))
    return SignIn(login, Sealer(["k" * 40]), clock, people=people, bearers=[people, tokens])


async def _signed_in(sign_in: SignIn, provider: LoginProvider) -> str:
    from raykeeper.history.http.access.guard import Guard

    async def nothing(*_: object) -> None:
        raise AssertionError("only the pages of the login are asked for")

    provider.person = {"sub": "jane", "name": "Jane", "groups": [f"team-{number}" for number in range(20)]}
    browser = Browser(Guard(nothing, sign_in))
    await browser.sign_in(provider)
    return browser.cookies[SESSION_COOKIE]


async def _p95(sign_in: SignIn, header: str, value: str) -> float:
    took = []
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "server": ("h", 80)}
    scope |= {"scheme": "http", "headers": [(header.encode(), value.encode())]}
    for number in range(REQUESTS):
        connection = HTTPConnection(dict(scope))
        began = time.perf_counter()
        verdict = await sign_in.check(connection)
        if number >= REQUESTS // 10:
            took.append(1000 * (time.perf_counter() - began))
        if verdict.caller is None:
            raise AssertionError(f"{header} is refused")
    return statistics.quantiles(took, n=20)[-1]
