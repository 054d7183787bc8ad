"""Whom the API server acts for by name: nobody becomes somebody else by it, or somebody who may do more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiohttp import web

from raykeeper.apiserver.auth.callers import KubernetesTokens, Rights
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.program import make_authenticator
from raykeeper.apiserver.settings import ApiAccessSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.reviews import AccessReviews, User
from support.clocks import ManualClock
from support.kube_clients import anonymous, connected
from support.scripted_server import served


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=datetime.now(UTC))


@pytest.fixture
async def kube() -> AsyncIterator[Kube]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError(request.path)

    async with served(handle) as url, connected(anonymous(url)) as kube:
        yield kube


SCOPED = (("scopes.authorization.openshift.io", ("user:info",)),)
POD = (("authentication.kubernetes.io/pod-name", ("a",)),)


@pytest.mark.parametrize(
    "user",
    [
        User("jane", (" system:masters",)),
        User("jane", ("blue", "")),
        User(" system:admin"),
        User("jane\t"),
        User(""),
        User("jane", ("blue",), extra=SCOPED),
        User("jane", ("blue",), extra=(*POD, *SCOPED)),
    ],
    ids=repr,
)
def test_who_would_change_by_headers_is_refused(user: User, kube: Kube, clock: ManualClock) -> None:
    with pytest.raises(CallFailed) as refusal:
        Rights(kube, AccessReviews(kube, clock), impersonate=True).kube_of(user)
    assert refusal.value.code is Code.Unauthenticated
    assert Rights(kube, AccessReviews(kube, clock), impersonate=False).kube_of(user), "reviews name them as they are"


def test_others_are_impersonated(kube: Kube, clock: ManualClock) -> None:
    user = User("system:serviceaccount:team:a", ("system:authenticated",), extra=POD)
    assert Rights(kube, AccessReviews(kube, clock), impersonate=True).kube_of(user).shows_caller


def test_questions_about_tokens_do_not_delay_those_about_rights(kube: Kube, clock: ManualClock) -> None:
    authenticator = make_authenticator(ApiAccessSettings("kubernetes"), kube, clock)
    assert isinstance(authenticator, KubernetesTokens)
    tokens, rights = authenticator.tokens._kube._lane, authenticator.rights.reviews._kube._lane
    assert tokens.limiter is not rights.limiter
    assert tokens.connections is not rights.connections
