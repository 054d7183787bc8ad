"""`raykeeper login`: a token of the identity provider, kept for the other commands and for this user alone."""

from __future__ import annotations

import asyncio
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from raykeeper.errors import RaykeeperError
from raykeeper.history.access_rules import AccessRules
from raykeeper.history.commands.kept_logins import LoginEnded, keep_login, kept_token, logins_file
from raykeeper.history.commands.login import LoginCommand, LoginFailed, run
from raykeeper.history.commands.subjects import Source, ask_server
from raykeeper.history.http.access.opening import open_authenticator
from raykeeper.history.http.app import make_app
from raykeeper.history.settings import AccessSettings, KubernetesSettings, LoginSettings
from raykeeper.oidc.settings import OidcSettings
from support.history_scene import a_scene
from support.identity_providers import CLIENT
from support.login_providers import LoginProvider, a_login_provider
from support.serving_history import serving


@dataclass
class PublicProvider(LoginProvider):
    """Of a client without a secret."""

    needed_secret: str = ""


@dataclass
class Stage:
    server: str
    provider: LoginProvider
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    async def login(self, open_page: Callable[[str], None] | None = None, seconds: float = 20.0) -> None:
        """In a thread, as the command has a loop of its own."""
        command = LoginCommand(self.server, seconds)
        await asyncio.to_thread(run, command, self.environment, _beside(open_page or _browse), self.said.append)


def _browse(address: str) -> None:
    """A browser that follows what the provider says."""
    urllib.request.urlopen(address).read()


def _beside(deed: Callable[[str], None]) -> Callable[[str], None]:
    """In a thread, so that the command can go on."""
    return lambda address: threading.Thread(target=deed, args=(address,)).start()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    scene = a_scene(tmp_path)
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(a_login_provider(PublicProvider))
        oidc = OidcSettings(provider.url, "raykeeper-server")
        rules = AccessRules(frozenset({"jane"}))
        login = LoginSettings("http://history", oidc, rules=rules, cookie_keys=("k" * 40,), cli_client_id=CLIENT)
        access = AccessSettings("oidc", login=login)
        opened = open_authenticator(access, KubernetesSettings(), {}, scene.store, scene.history.clock)
        app = make_app(replace(scene.history, access=access), authenticator=await stack.enter_async_context(opened))
        server = await stack.enter_async_context(serving(app))
        yield Stage(server, provider, {"XDG_CONFIG_HOME": str(tmp_path / "config")})


async def test_the_token_is_kept_for_this_user_alone_and_used_by_the_others(stage: Stage) -> None:
    await stage.login()
    file = logins_file(stage.environment)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    token = Source(server=f"{stage.server}/").token(stage.environment)
    assert b"sessions" in await ask_server(stage.server, "/api/keeper/v1/sessions", token)
    assert Source(server="http://elsewhere").token(stage.environment) == ""
    assert token not in "".join(stage.said)


async def test_what_is_given_counts_before_what_is_kept(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-a-file")
    environment = {**stage.environment, "RAYKEEPER_TOKEN": "of-a-variable"}
    assert Source(server=stage.server, given_token="given").token(environment) == "given"
    assert Source(server=stage.server, token_file=tmp_path / "token").token(environment) == "of-a-file"
    assert Source(server=stage.server).token(environment) == "of-a-variable"


async def test_a_login_that_ended_says_how_to_have_another(stage: Stage) -> None:
    keep_login(stage.server, stage.provider.token(exp=int(time.time()) - 1), stage.environment)
    with pytest.raises(LoginEnded, match=f"raykeeper login --server={stage.server}"):
        kept_token(stage.server, stage.environment)


async def test_an_answer_that_belongs_to_no_login_changes_nothing(stage: Stage) -> None:
    def forge(address: str) -> None:
        back = stage.provider.sign_in(address, state="made-up")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(back)

    with pytest.raises(LoginFailed, match="nobody signed in"):
        await stage.login(forge, seconds=1.0)
    assert not logins_file(stage.environment).exists()


async def test_a_token_of_another_login_is_not_kept(stage: Stage) -> None:
    stage.provider.changes = {"nonce": "of-another"}
    with pytest.raises(LoginFailed, match="another login"):
        await stage.login()


async def test_a_server_without_such_a_login_says_what_is_missing(tmp_path: Path) -> None:
    async with serving(a_scene(tmp_path).app) as server:
        stage = Stage(server, LoginProvider(), {})
        with pytest.raises(RaykeeperError, match="--oidc-cli-client-id"):
            await stage.login()
