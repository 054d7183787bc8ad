"""From the settings to whoever decides who a request comes from, with the clients that they need."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from raykeeper.clock import Clock
from raykeeper.history.http.access.callers import Authenticator, Caller
from raykeeper.history.http.access.guard import Everybody
from raykeeper.history.http.access.static_token import StaticToken
from raykeeper.history.settings import AccessSettings, KubernetesSettings
from raykeeper.history.store.namespaces import StoredNamespaces
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.login")


class _TokenHolders:
    """Whoever shows the one token of this server."""

    def __init__(self, token: str) -> None:
        self._token = StaticToken(token)

    async def caller(self, token: str) -> Caller | None:
        return self._token.caller(token)


@asynccontextmanager
async def open_authenticator(
    access: AccessSettings,
    kubernetes: KubernetesSettings,
    environment: Mapping[str, str],
    store: ObjectStore,
    clock: Clock,
) -> AsyncIterator[Authenticator]:
    """Raises `Misconfigured` where an API server is needed and cannot be found."""
    if access.mode == "none":
        yield Everybody()
    elif access.mode == "token":
        yield StaticToken(access.token)
    else:
        async with _open_sign_in(access, kubernetes, environment, store, clock) as sign_in:
            yield sign_in


@asynccontextmanager
async def _open_sign_in(
    access: AccessSettings,
    kubernetes: KubernetesSettings,
    environment: Mapping[str, str],
    store: ObjectStore,
    clock: Clock,
) -> AsyncIterator[Authenticator]:
    # Imported here because clients of Kubernetes and of identity providers cost 15 MB, which others need not pay.
    from raykeeper.history.http.access.people import People
    from raykeeper.history.http.access.reviews import KubernetesTokens, NamespaceReviews
    from raykeeper.history.http.access.sealing import Sealer
    from raykeeper.history.http.access.sign_in import Bearer, SignIn

    login, modes = access.login, {access.mode, *access.also}
    async with AsyncExitStack() as stack:
        bearers: list[Bearer] = [_TokenHolders(access.token)] if "token" in modes else []
        reviews: NamespaceReviews | None = None
        if "kubernetes" in modes or login.asks_kubernetes:
            from prometheus_client import CollectorRegistry

            from raykeeper.kube.client import Kube
            from raykeeper.kube.connect.connection import load_connection
            from raykeeper.kube.metrics import KubeMetrics
            from raykeeper.kube.reviews import TokenReviews

            connection = await load_connection(kubernetes.kubeconfig, environment=environment)
            kube = await stack.enter_async_context(Kube(connection, metrics=KubeMetrics(CollectorRegistry())))
            reviews = NamespaceReviews(kube, clock, StoredNamespaces(store, clock).names)
            if "kubernetes" in modes:
                bearers.append(KubernetesTokens(TokenReviews(kube, clock, access.audiences), reviews))
        people: People | None = None
        if access.mode in ("oidc", "ram"):
            people = People(access.mode, login, clock, reviews if login.asks_kubernetes else None)
            bearers.insert(len(bearers) - ("kubernetes" in modes), people)
        if not login.cookie_keys:
            log.warning("no cookie key is set: sessions end with this process, and no other replica knows them")
        sealer = Sealer(login.cookie_keys or (secrets.token_urlsafe(32),))
        takes_typed_tokens = not {"token", "kubernetes"}.isdisjoint(modes)
        yield SignIn(login, sealer, clock, people=people, bearers=bearers, takes_typed_tokens=takes_typed_tokens)
