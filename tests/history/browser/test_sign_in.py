"""A real browser signs in at a certified identity provider, and at two history servers that share one key."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bed.fixtures import run_folder
from bed.npm import npm_is_missing, npm_modules
from bed.ports import free_port
from bed.processes import Process
from bed.waiting import wait_until
from history.browser.accessibility import barriers_of, install_axe
from history.browser.tab import Tab
from raykeeper.history.http.access.opening import open_authenticator
from raykeeper.history.http.app import make_app
from raykeeper.history.settings import KubernetesSettings
from raykeeper.history.sources import read_settings
from raykeeper.layout.keys import SessionId
from support.conditions import eventually
from support.history_scene import a_scene, local_store, put_session
from support.identity_providers import CLIENT
from support.login_providers import SECRET as CLIENT_SECRET
from support.login_providers import RamProvider, a_login_provider
from support.serving_history import serving

START_SECONDS = 90.0
SECRET = "a-secret-of-the-client"
SCRIPT = Path(__file__).parents[2] / "support" / "oidc_provider.mjs"
LIFE_MINUTES = 0.17
MAP = 'groups: {red: [team-red], blue: [team-blue]}\nusers: {"carol": ["*"]}\n'
pytestmark = [
    pytest.mark.bed,
    pytest.mark.interop,
    pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing())),
]


@dataclass
class Site:
    """Two replicas behind names of one host, and the provider's own log."""

    first: str
    second: str
    provider: Process

    def said(self) -> list[dict[str, str]]:
        lines = self.provider.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def grants(self, kind: str) -> int:
        return sum(one["event"] == "grant.success" and one.get("grant") == kind for one in self.said())


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    runs = run_folder(request.config) / f"sign-in-{uuid.uuid4().hex[:8]}"
    asyncio.run(fill(folder / "store"))
    (folder / "keys").write_text("k" * 48)
    (folder / "secret").write_text(SECRET)
    (folder / "map.yaml").write_text(MAP)
    ports = [free_port() for _ in range(3)]
    first, second, issuer = (f"http://localhost:{port}" for port in ports)
    with ExitStack() as stack:
        command = [
            str(shutil.which("node")),
            str(SCRIPT),
            str(npm_modules("oidc-provider")),
            str(ports[2]),
            SECRET,
            first,
        ]
        provider = stack.enter_context(running("provider", command, runs / "provider", '"listening"'))
        for number, port in enumerate(ports[:2]):
            flags = [
                f"--store=file://{folder}/store",
                f"--cache-dir={runs}/cache-{number}",
                f"--bind=127.0.0.1:{port}",
                *("--auth=oidc", f"--public-url={first}", f"--oidc-issuer-url={issuer}", "--oidc-client-id=raykeeper"),
                f"--oidc-client-secret-file={folder}/secret",
                f"--cookie-key-file={folder}/keys",
                f"--namespace-map={folder}/map.yaml",
                f"--login-session-minutes={LIFE_MINUTES}",
                "--login-contact=#ray-help",
            ]
            command = [sys.executable, "-m", "raykeeper.cli.main", "history", *flags]
            stack.enter_context(running(f"history-{number}", command, runs / f"history-{number}", "listening"))
        yield Site(first, second, provider)


@contextmanager
def running(name: str, command: list[str], folder: Path, ready: str) -> Iterator[Process]:
    process = Process(name, command, folder, {})
    process.start()

    def is_ready() -> bool:
        assert process.alive, process.last_lines()
        return ready in process.log_file.read_text()

    try:
        wait_until(f"{name} listens", is_ready, START_SECONDS)
        yield process
    finally:
        process.stop()


async def fill(folder: Path) -> None:
    store = local_store(folder)
    for team in ("team-red", "team-blue"):
        await put_session(store, SessionId(team, f"{team}-train", f"session_2026-11-15_20-00-00_000000_{team}"))


async def sign_in(tab: Tab, site: Site, person: str, path: str = "/sessions") -> None:
    """As a person does: from our page to the provider's, and back."""
    await tab.open(f"{site.first}{path}")
    await tab.shows(["Sign in with localhost"])
    await tab.click("Sign in with localhost", "a")
    await at_provider(tab, person)


async def at_provider(tab: Tab, person: str) -> None:
    await tab.shows(["Sign-in"])
    await tab.run(
        f"document.querySelector('input[name=login]').value = '{person}';"
        "document.querySelector('input[name=password]').value = 'any'"
    )
    await tab.click("Sign-in", "button")
    await tab.shows(["Authorize"])
    await tab.click("Continue", "button")


async def forget(tab: Tab) -> None:
    """Be a browser that was nowhere yet."""
    await tab.tell("Network.clearBrowserCookies")


async def test_people_sign_in_see_their_own_are_refreshed_and_sign_out(tab: Tab, site: Site, shots: Path) -> None:
    await forget(tab)
    await tab.open(f"{site.first}/sessions")
    await tab.shows(["Sign in to Raykeeper", "#ray-help"])
    await install_axe(tab)
    assert await barriers_of(tab) == []
    await tab.screenshot(shots / "sign-in.png")
    await sign_in(tab, site, "alice", "/sessions?namespace=team-red")
    await tab.shows(["team-red-train", "alice@example.org", "Sign out"])
    assert await tab.address() == f"{site.first}/sessions?namespace=team-red", "back where it began"
    assert "team-blue" not in await tab.text()
    await tab.screenshot(shots / "signed-in.png")
    await tab.open(f"{site.second}/sessions")
    await tab.shows(["team-red-train", "alice@example.org"])
    assert "team-blue" not in await tab.text(), "another replica knows the session by the shared key alone"
    refreshed = site.grants("refresh_token")

    async def is_refreshed() -> bool:
        await tab.open(f"{site.second}/sessions")
        await tab.shows(["team-red-train"])
        return site.grants("refresh_token") > refreshed

    await eventually(is_refreshed, seconds=60)
    assert await tab.value_of("document.cookie") == "", "no script can read it"
    await tab.open(f"{site.first}/sessions")
    await tab.shows(["Sign out"])
    await tab.click("Sign out", "button")
    await tab.shows(["Do you want to sign-out from localhost"])
    await tab.click("Yes, sign me out", "button")
    await tab.shows(["Sign in with localhost"])
    assert (await tab.address()).startswith(f"{site.first}/login")
    assert any(one["event"] == "grant.revoked" for one in site.said()), "the refresh token is good no longer"
    for replica in (site.first, site.second):
        await tab.open(f"{replica}/sessions")
        await tab.shows(["Sign in to Raykeeper"])


async def test_after_its_life_a_session_comes_back_without_a_question(tab: Tab, site: Site) -> None:
    """The cookie's refresh token is gone at the provider, whose own session knows the person still."""
    await forget(tab)
    await sign_in(tab, site, "bob")
    await tab.shows(["team-blue-train"])
    before = site.grants("authorization_code")
    await tab.open("about:blank")
    await asyncio.to_thread(wait_until, "the session is over", life_is_over(), 60.0)
    await tab.open(f"{site.first}/sessions")
    await tab.shows(["team-blue-train", "bob@example.org"])
    assert site.grants("authorization_code") + site.grants("refresh_token") > before


def life_is_over() -> Callable[[], bool]:
    ends_at = time.monotonic() + LIFE_MINUTES * 60 + 1
    return lambda: time.monotonic() > ends_at


async def test_who_may_see_nothing_is_told_what_is_missing(tab: Tab, site: Site, shots: Path) -> None:
    await forget(tab)
    await sign_in(tab, site, "eve")
    await tab.shows(["You may not see this server", "have no namespace", "#ray-help", "Verified e-mail", "none"])
    await install_axe(tab)
    assert await barriers_of(tab) == []
    await tab.screenshot(shots / "forbidden.png")


async def test_people_sign_in_with_alibaba_ram_in_a_browser(tab: Tab, tmp_path: Path) -> None:
    """Two replicas, as `CallbackServiceName` names the first; the endpoint answers as RAM does."""
    await forget(tab)
    scene = a_scene(tmp_path)
    await put_session(scene.store, SessionId("team-red", "red-train", "session_2026-11-15_20-00-00_000000_9"))
    await put_session(scene.store, SessionId("team-blue", "blue-train", "session_2026-11-15_20-00-00_000000_8"))
    port = free_port()
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(a_login_provider(RamProvider))
        flags = [
            *("--store=file:///unused", "--auth=ram", f"--callback-service-name=localhost:{port}"),
            *(f"--oidc-issuer-url={provider.url}", f"--oidc-client-id={CLIENT}", f"--namespace-map={tmp_path}/map"),
            "--login-allow-uids=2000000000000002",
        ]
        (tmp_path / "map").write_text('users: {"2000000000000002": [team-red]}')
        secrets = {"RAYKEEPER_OIDC_CLIENT_SECRET": CLIENT_SECRET, "RAYKEEPER_COOKIE_KEYS": "k" * 40}
        access = read_settings(flags, secrets).access
        replicas = []
        for number in (port, 0):
            opened = open_authenticator(access, KubernetesSettings(), {}, scene.store, scene.history.clock)
            authenticator = await stack.enter_async_context(opened)
            app = make_app(replace(scene.history, access=access), authenticator=authenticator)
            address = await stack.enter_async_context(serving(app, number))
            replicas.append(address.replace("127.0.0.1", "localhost"))
        await tab.open(f"{replicas[0]}/sessions")
        await tab.click("Sign in with 127.0.0.1", "a")
        await tab.shows(["red-train"])
        for replica in replicas:
            await tab.open(f"{replica}/sessions")
            await tab.shows(["red-train", "alice", "Sign out"])
            assert "blue-train" not in await tab.text()
        await tab.click("Sign out", "button")
        await tab.shows(["You are signed out of this server."])
        assert provider.refresh_tokens == set(), "revoked"
        await tab.open(f"{replicas[0]}/sessions")
        await tab.shows(["Sign in to Raykeeper"])
