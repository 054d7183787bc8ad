"""Tokens of Kubernetes, reviewed by a real API server: who gets in, which namespaces they see, and for how long."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from raykeeper.history.http.access.opening import open_authenticator
from raykeeper.history.http.app import make_app
from raykeeper.history.settings import AccessSettings, AuthMode, KubernetesSettings, LoginSettings
from raykeeper.kube.reviews import KEPT_SECONDS
from raykeeper.layout.keys import SessionId
from raykeeper.oidc.settings import OidcSettings
from support.api_access import (
    READ,
    grant,
    grant_everywhere,
    group,
    make_account,
    revoke_everywhere,
    service_account,
    user,
)
from support.asking import Answered, ask
from support.clocks import ManualClock
from support.conditions import eventually
from support.history_scene import Scene, a_scene, put_session
from support.identity_providers import CLIENT, a_provider
from support.login_providers import Browser

pytestmark = pytest.mark.bed
SESSIONS = "/api/keeper/v1/sessions"
REVIEWER = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""All that the chart gives a history server for this."""


@dataclass
class Stage:
    """Two namespaces with history, a third one without rights for anybody."""

    plane: ControlPlane
    red: str
    blue: str
    green: str
    kubeconfig: Path


@pytest.fixture(scope="module")
def stage(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    mark = uuid.uuid4().hex[:6]
    names = [f"{colour}-{mark}" for colour in ("red", "blue", "green")]
    for name in names:
        make_namespace(control_plane, name)
    for account in ("server", "alice", "boss", "nobody"):
        make_account(control_plane, names[0], account)
    grant_everywhere(control_plane, f"reviewer-{mark}", REVIEWER, service_account(names[0], "server"))
    grant_everywhere(control_plane, f"boss-{mark}", READ, service_account(names[0], "boss"))
    for name in names[:2]:
        grant(control_plane, name, "alice", READ, service_account(names[0], "alice"))
    grant(control_plane, names[2], "from-the-provider", READ, user("oidc:jane"), group("oidc:greens"))
    kubeconfig = control_plane.kubeconfig("server", token=control_plane.token(names[0], "server"))
    red, blue, green = names
    yield Stage(control_plane, red, blue, green, kubeconfig)
    for one in (f"reviewer-{mark}", f"boss-{mark}"):
        revoke_everywhere(control_plane, one)
    for name in names:
        remove_namespace(control_plane, name)


@pytest.fixture
async def scene(stage: Stage, tmp_path: Path) -> Scene:
    made = a_scene(tmp_path, clock=ManualClock(now=datetime.now(UTC)))
    for namespace in (stage.red, stage.blue, stage.green):
        await put_session(made.store, SessionId(namespace, "train", f"session_2026-11-15_20-00-00_000000_{namespace}"))
    return made


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


async def server(
    stage: Stage, scene: Scene, stack: AsyncExitStack, mode: AuthMode = "kubernetes", **changes: Any
) -> ASGIApp:
    login = LoginSettings(cookie_keys=("k" * 40,))
    access = replace(AccessSettings(mode, login=login), **changes)
    kubernetes = KubernetesSettings(kubeconfig=changes.pop("kubeconfig", stage.kubeconfig))
    opened = open_authenticator(access, kubernetes, {}, scene.store, scene.history.clock)
    authenticator = await stack.enter_async_context(opened)
    return make_app(replace(scene.history, access=access), authenticator=authenticator)


async def asked(app: ASGIApp, token: str) -> Answered:
    return await ask(app, SESSIONS, headers={"Authorization": f"Bearer {token}"})


def namespaces(answered: Answered) -> set[str]:
    assert answered.status == 200, answered.text
    return {one["namespace"] for one in answered.body["sessions"]}


async def test_rights_on_rayclusters_say_which_history_one_sees(
    stage: Stage, scene: Scene, stack: AsyncExitStack
) -> None:
    app, plane = await server(stage, scene, stack), stage.plane
    alice, boss, nobody = (plane.token(stage.red, name) for name in ("alice", "boss", "nobody"))
    assert namespaces(await asked(app, boss)) == {stage.red, stage.blue, stage.green}
    assert namespaces(await asked(app, alice)) == {stage.red, stage.blue}
    assert namespaces(await asked(app, nobody)) == set()
    assert (await asked(app, plane.expired_token(stage.red, "alice"))).status == 403
    assert (await asked(app, "made-up")).status == 403
    assert (await ask(app, SESSIONS)).status == 401
    hidden = f"/s/{stage.green}/train/session_2026-11-15_20-00-00_000000_{stage.green}/api/version"
    assert (await ask(app, hidden, headers={"Authorization": f"Bearer {alice}"})).status == 404
    assert (await ask(app, hidden, headers={"Authorization": f"Bearer {boss}"})).status == 200


async def test_a_right_that_is_taken_away_counts_no_longer_after_seconds(
    stage: Stage, scene: Scene, stack: AsyncExitStack
) -> None:
    app, clock = await server(stage, scene, stack), scene.history.clock
    assert isinstance(clock, ManualClock)
    name = f"late-{uuid.uuid4().hex[:6]}"
    make_account(stage.plane, stage.red, name)
    token = stage.plane.token(stage.red, name)
    assert namespaces(await asked(app, token)) == set()
    grant(stage.plane, stage.green, name, READ, service_account(stage.red, name))
    clock.advance(KEPT_SECONDS + 1)

    async def sees_green() -> bool:
        clock.advance(KEPT_SECONDS + 1)  # the API server's own authorizer hears of it a moment later
        return namespaces(await asked(app, token)) == {stage.green}

    await eventually(sees_green, seconds=30)
    stage.plane.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{stage.green}/rolebindings/{name}")
    assert namespaces(await asked(app, token)) == {stage.green}, "within the time that is documented"

    async def sees_nothing() -> bool:
        clock.advance(KEPT_SECONDS + 1)
        return namespaces(await asked(app, token)) == set()

    await eventually(sees_nothing, seconds=30)
    stage.plane.admin.delete(f"/api/v1/namespaces/{stage.red}/serviceaccounts/{name}")

    async def is_refused() -> bool:
        clock.advance(KEPT_SECONDS + 1)
        return (await asked(app, token)).status == 403

    await eventually(is_refused, seconds=30)


async def test_a_token_of_kubernetes_can_be_typed_in(stage: Stage, scene: Scene, stack: AsyncExitStack) -> None:
    browser = Browser(await server(stage, scene, stack))
    token = stage.plane.token(stage.red, "alice")
    assert "kubectl create token" in (await browser.get("/login")).text
    entered = await browser.send("POST", "/login", f"token={token}&next=/sessions".encode())
    assert entered.status == 303
    page = (await browser.get("/sessions")).text
    assert f"system:serviceaccount:{stage.red}:alice" in page
    assert stage.green not in page
    assert token[:40] not in str(browser.set_cookies)


async def test_a_reviewer_that_is_away_means_503_and_never_open(
    stage: Stage, scene: Scene, stack: AsyncExitStack, tmp_path: Path
) -> None:
    """An API server that refuses connections, and a server of ours that lost its own rights."""
    away = tmp_path / "away"
    away.write_text(stage.kubeconfig.read_text().replace(stage.plane.server, "https://127.0.0.1:1"))
    without = stage.plane.kubeconfig("nobody", token=stage.plane.token(stage.red, "nobody"))
    for kubeconfig in (away, without):
        access = AccessSettings("kubernetes", login=LoginSettings(cookie_keys=("k" * 40,)))
        opened = open_authenticator(
            access, KubernetesSettings(kubeconfig=kubeconfig), {}, scene.store, scene.history.clock
        )
        app = make_app(scene.history, authenticator=await stack.enter_async_context(opened))
        answered = await asked(app, stage.plane.token(stage.red, "boss"))
        assert (answered.status, answered.headers["retry-after"]) == (503, "5")


async def test_people_of_an_identity_provider_see_what_kubernetes_says_of_them(
    stage: Stage, scene: Scene, stack: AsyncExitStack
) -> None:
    provider = await stack.enter_async_context(a_provider())
    oidc = OidcSettings(provider.url, CLIENT, username_prefix="oidc:", groups_claim="groups", groups_prefix="oidc:")
    login = LoginSettings("http://history", oidc, cookie_keys=("k" * 40,), asks_kubernetes=True)
    app = await server(stage, scene, stack, "oidc", login=login, also=frozenset({"kubernetes"}))
    assert namespaces(await asked(app, provider.token(sub="jane"))) == {stage.green}
    assert namespaces(await asked(app, provider.token(sub="joe", groups=["greens"]))) == {stage.green}
    refused = await asked(app, provider.token(sub="joe", groups=["reds"]))
    assert (refused.status, "no namespace that has history here" in refused.text) == (403, True)
    assert namespaces(await asked(app, stage.plane.token(stage.red, "alice"))) == {stage.red, stage.blue}
