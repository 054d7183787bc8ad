"""Who may read: on which addresses a token is needed, and what it opens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.history.http.access.static_token import COOKIE
from raykeeper.history.http.pages.login import local_path
from raykeeper.history.settings import AccessSettings, HistorySettings
from raykeeper.history.sources import read_settings
from support.asking import Answered, ask
from support.history_scene import Scene, a_scene, put_session, session_url

TOKEN = "correct-horse-battery"
STORE = "--store=file:///history"


def settings(*arguments: str, as_kuberay: bool = False, **environment: str) -> HistorySettings:
    return read_settings([STORE, *arguments], environment, as_kuberay=as_kuberay)


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path, access=AccessSettings("token", TOKEN))
    await put_session(scene.store)
    return scene


def test_loopback_needs_no_token() -> None:
    assert settings().access == AccessSettings("none", answers_localhost_only=True)
    for bind in ("127.0.0.1:0", "localhost:1", "[::1]:8080", "127.8.8.8:80"):
        assert not settings(f"--bind={bind}").access.is_undecided


@pytest.mark.parametrize("bind", [":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.1:80", "history.example:80"])
def test_any_other_address_needs_a_decision(bind: str) -> None:
    with pytest.raises(Misconfigured, match="--auth=token"):
        settings(f"--bind={bind}")
    assert settings(f"--bind={bind}", "--auth=none").access == AccessSettings("none")
    assert settings(f"--bind={bind}", "--auth=token", RAYKEEPER_AUTH_TOKEN=TOKEN).access.token == TOKEN


def test_under_kuberays_name_it_listens_everywhere_and_says_so() -> None:
    found = settings(as_kuberay=True)
    assert (found.bind, found.access.is_undecided) == (":8080", True)
    assert not settings("--auth=none", as_kuberay=True).access.is_undecided


@pytest.mark.parametrize("modes", ["basic", "none,token", "oidc,ram", "token,", ","])
def test_modes_that_make_no_sense_are_refused_by_name(modes: str) -> None:
    with pytest.raises(Misconfigured, match=f"--auth='{modes}'"):
        settings(f"--auth={modes}", RAYKEEPER_AUTH_TOKEN=TOKEN)


PROVIDER = ("--oidc-issuer-url=https://login.example", "--oidc-client-id=us", "--public-url=https://history.example")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--oidc-client-id=a"], "--oidc-issuer-url"),
        (["--oidc-issuer-url=https://a"], "--oidc-client-id"),
        (["--oidc-issuer-url=http://a"], "--oidc-issuer-url"),
        (PROVIDER, "--auth"),
        ([*PROVIDER[:2], "--login-allow-uids=a"], "--public-url"),
        ([*PROVIDER, "--login-allow-uids=a", "--public-url=https://history.example/path"], "--public-url"),
        ([*PROVIDER, "--login-allow-emails=*@*"], "--login-allow-emails"),
        ([*PROVIDER, "--login-allow-uids=a b"], "--login-allow-uids"),
        ([*PROVIDER, "--login-allow-uids=a", "--login-session-minutes=0"], "--login-session-minutes"),
        ([*PROVIDER, "--login-allow-uids=a", "--login-max-hours=0.1"], "--login-session-minutes"),
        ([*PROVIDER, "--namespace-map=/nowhere"], "--namespace-map"),
        ([*PROVIDER, "--login-allow-uids=a", "--monitoring-url=https://other.example"], "--monitoring-url"),
        ([*PROVIDER, "--login-allow-uids=a", "--monitoring-url=http://history.example"], "--monitoring-url"),
    ],
)
def test_a_login_that_cannot_work_is_refused_by_name(flags: list[str], named: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        settings("--auth=oidc", *flags)
    assert refused.value.setting == named


def test_the_second_address_has_the_name_of_the_first_unless_another_port_is_given() -> None:
    plain = ["--auth=oidc", *PROVIDER, "--login-allow-uids=a", "--monitoring-bind=:3000"]
    assert settings(*plain).access.login.monitoring_url == "https://history.example:3000"
    given = settings(*plain, "--monitoring-url=https://history.example:8443/").access.login
    assert given.monitoring_url == "https://history.example:8443"
    ported = settings(*plain, "--public-url=localhost:8080").access.login
    assert (ported.public_url, ported.monitoring_url) == ("http://localhost:8080", "http://localhost:3000")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "groups: [a]",
        "group: {a: [b]}",
        "groups: {a: b}",
        "groups: {a: ['team-*']}",
        "users: {1: [a]}",
        "a: &a [*a]",
    ],
)
def test_a_map_that_means_nothing_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "map").write_text(text)
    with pytest.raises(Misconfigured, match="--namespace-map"):
        settings("--auth=oidc", *PROVIDER, f"--namespace-map={tmp_path / 'map'}")


def test_secrets_of_the_login_are_not_printed(tmp_path: Path) -> None:
    found = settings(
        *("--auth=oidc", *PROVIDER, "--login-allow-uids=*"),
        RAYKEEPER_OIDC_CLIENT_SECRET="hidden-secret",
        RAYKEEPER_COOKIE_KEYS="hidden-" * 8,
    )
    assert found.access.login.client_secret == "hidden-secret"
    assert "hidden" not in repr(found)
    with pytest.raises(Misconfigured) as refused:
        settings("--auth=kubernetes", RAYKEEPER_COOKIE_KEYS="hidden")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("token", ["", "short", "with a space in it", "ümlaut-ümlaut-ümlaut"])
def test_a_token_that_protects_nothing_is_refused_and_not_printed(token: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        settings("--auth=token", RAYKEEPER_AUTH_TOKEN=token)
    assert not token or token not in str(refused.value)


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert settings("--auth=token", f"--auth-token-file={tmp_path / 'token'}").access.token == TOKEN
    with pytest.raises(Misconfigured, match="--auth-token-file"):
        settings("--auth=token", f"--auth-token-file={tmp_path / 'nowhere'}")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("localhost", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("evil.example:8080", 403),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
        ("10.0.0.1:8080", 403),
    ],
)
async def test_a_web_page_cannot_read_loopback_under_its_own_name(tmp_path: Path, host: str, status: int) -> None:
    scene = a_scene(tmp_path, access=settings().access)
    assert (await ask(scene.app, "/clusters", headers={"Host": host})).status == status


def test_who_says_that_all_may_read_may_use_any_name() -> None:
    assert not settings("--auth=none").access.answers_localhost_only


@pytest.mark.parametrize("header", ["Authorization", "X-Ray-Authorization"])
async def test_the_token_opens_everything_in_the_headers_that_ray_sends(scene: Scene, header: str) -> None:
    for path in ("/", "/clusters", f"{session_url()}/api/version"):
        assert (await ask(scene.app, path, headers={header: f"Bearer {TOKEN}"})).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/clusters",
        "/enter_cluster/team-a/raycluster/train",
        f"{session_url()}/api/version",
        "/nodes",
        "/s/a/b/latest/",
    ],
)
async def test_nothing_is_told_without_the_token(scene: Scene, path: str) -> None:
    without = await ask(scene.app, path)
    assert (without.status, without.text) == (401, "Unauthorized: Missing authentication token")
    for shown in (
        "Bearer wrong-wrong-wrong-wrong",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer",
        f"Bearer {TOKEN}x",
        "Bearer \xff",
    ):
        wrong = await ask(scene.app, path, headers={"Authorization": shown})
        assert (wrong.status, wrong.text) == (403, "Forbidden: Invalid authentication token")


async def test_probes_and_metrics_need_no_token(scene: Scene) -> None:
    for path in ("/readz", "/livez", "/metrics"):
        assert (await ask(scene.app, path)).status == 200


async def test_a_browser_is_asked_for_the_token_and_remembered(scene: Scene) -> None:
    sent = await ask(scene.app, f"{session_url()}/?a=b", headers={"Accept": "text/html"})
    assert (sent.status, sent.headers["location"]) == (303, f"/login?next={session_url()}/%3Fa%3Db")
    form = await ask(scene.app, sent.headers["location"])
    assert f'value="{session_url()}/?a=b"' in form.text
    entered = await log_in(scene, TOKEN, f"{session_url()}/")
    assert (entered.status, entered.headers["location"]) == (303, f"{session_url()}/")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert TOKEN not in cookie
    assert (await ask(scene.app, "/clusters", headers={"Cookie": cookie.partition(";")[0]})).status == 200


async def test_a_page_of_another_site_types_no_token_in(scene: Scene) -> None:
    answered = await ask(
        scene.app, "/login", method="POST", headers={"Origin": "http://evil"}, body=f"token={TOKEN}".encode()
    )
    assert (answered.status, answered.all_of("set-cookie")) == (403, [])


async def test_a_wrong_token_and_a_forged_cookie_open_nothing(scene: Scene) -> None:
    wrong = await log_in(scene, "wrong", "/")
    assert wrong.status == 403
    assert "set-cookie" not in wrong.headers
    for cookie in (TOKEN, "", "0" * 64, "\xff"):
        assert (await ask(scene.app, "/clusters", headers={"Cookie": f"{COOKIE}={cookie}"})).status == 401


async def test_two_replicas_take_each_others_cookies(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = a_scene(tmp_path / "other", access=AccessSettings("token", TOKEN))
    cookie = (await log_in(scene, TOKEN, "/")).headers["set-cookie"].partition(";")[0]
    assert (await ask(other.app, "/clusters", headers={"Cookie": cookie})).status == 200


async def test_the_page_that_asks_for_the_token_is_drawn_with_our_style_and_nothing_else_is_open(scene: Scene) -> None:
    page = await ask(scene.app, "/login")
    assert page.status == 401
    assert "Sign in to Raykeeper" in page.text
    assert "RAYKEEPER_AUTH_TOKEN" in page.text, "it says where the token comes from"
    for path in re.findall(r'(?:href|src)="(/[^"]*)"', page.text):
        assert path.startswith("/keeper/static/")
        assert (await ask(scene.app, path)).status == 200
    for path in ("/", "/jobs", "/api/keeper/v1/sessions", "/api/keeper/v1/openapi.json", "/keeper/"):
        assert (await ask(scene.app, path)).status == 401


@pytest.mark.parametrize(
    "text",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a\r\nSet-Cookie: x"],
)
def test_the_login_leads_nowhere_else(text: str) -> None:
    assert local_path(text) == "/"


async def log_in(scene: Scene, token: str, next_path: str) -> Answered:
    return await ask(scene.app, "/login", method="POST", body=f"token={token}&next={next_path}".encode())
