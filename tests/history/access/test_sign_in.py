"""Signing in at an identity provider: who gets in, how long it lasts, and what is refused."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.access_rules import AccessRules, parse_namespace_map
from raykeeper.history.http.access.opening import open_authenticator
from raykeeper.history.http.app import make_app
from raykeeper.history.http.monitoring import GuardedGrafana
from raykeeper.history.http.responses import text_response
from raykeeper.history.settings import AccessSettings, AuthMode, KubernetesSettings, LoginSettings
from raykeeper.layout.keys import SessionId
from raykeeper.oidc.settings import OidcSettings
from support.asking import ask
from support.clocks import ManualClock
from support.history_scene import Scene, a_scene, put_session
from support.identity_providers import CLIENT, new_key, without_signature
from support.login_providers import SECRET, Browser, LoginProvider, RamProvider, a_login_provider, path_of

KEY, OLD_KEY = "k" * 40, "o" * 40
SESSIONS = "/api/keeper/v1/sessions"
RULES = AccessRules(
    namespaces=parse_namespace_map({"groups": {"red": ["team-red"], "admins": ["*"]}, "users": {"jane": ["team-blue"]}})
)
PUBLIC = "http://history"


@dataclass
class Stage:
    """One provider, one store, and as many replicas as a test wants."""

    provider: LoginProvider
    scene: Scene
    stack: AsyncExitStack
    clock: ManualClock

    async def replica(self, mode: AuthMode = "oidc", **changes: Any) -> Browser:
        """A browser at a server of its own."""
        oidc = OidcSettings(self.provider.url, CLIENT, username_prefix="-", groups_claim="groups")
        if mode == "ram":
            oidc = replace(oidc, username_claim="upn", groups_claim="")
        plain = LoginSettings(PUBLIC, oidc, SECRET, rules=RULES, cookie_keys=(KEY,), contact="#ray-help")
        access = AccessSettings(mode, token="a-static-token-for-programs", also=frozenset({"token"}))
        access = replace(access, login=replace(plain, **changes), is_audited=True)
        opened = open_authenticator(access, KubernetesSettings(), {}, self.scene.store, self.clock)
        authenticator = await self.stack.enter_async_context(opened)
        return Browser(make_app(replace(self.scene.history, access=access), authenticator=authenticator))


@asynccontextmanager
async def a_stage(folder: Path, kind: type[LoginProvider] = LoginProvider) -> AsyncIterator[Stage]:
    clock = ManualClock(now=datetime.now(UTC))
    scene = a_scene(folder, clock=clock)
    for namespace in ("team-red", "team-blue", "team-green"):
        await put_session(scene.store, SessionId(namespace, "train", f"session_2026-11-15_20-00-00_000000_{namespace}"))
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(a_login_provider(kind))
        provider.now = lambda: clock.now().timestamp()
        yield Stage(provider, scene, stack, clock)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path) as made:
        yield made


async def seen_by(browser: Browser) -> set[str]:
    answered = await browser.get(SESSIONS, Accept="application/json")
    assert answered.status == 200, answered.text
    return {one["namespace"] for one in answered.body["sessions"]}


async def test_somebody_who_signed_in_sees_the_namespaces_of_the_map(stage: Stage) -> None:
    browser = await stage.replica()
    sent = await browser.get("/sessions")
    assert (sent.status, sent.headers["location"]) == (303, "/login?next=/sessions")
    page = await browser.get(sent.headers["location"])
    assert "Sign in with 127.0.0.1" in page.text
    assert "#ray-help" in page.text
    stage.provider.person = {"sub": "jane", "name": "Jane", "groups": ["red"]}
    entered = await browser.sign_in(stage.provider)
    assert (entered.status, entered.headers["location"]) == (303, "/sessions")
    assert await seen_by(browser) == {"team-red", "team-blue"}
    shown = (await browser.get("/sessions")).text
    assert "Signed in as Jane" in shown
    assert "Sign out" in shown
    assert "team-green" not in shown


async def test_the_cookie_tells_nothing_and_is_kept_from_scripts_and_other_sites(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    [line] = [line for line in browser.set_cookies if line.startswith("raykeeper_session=")]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(line.split("; "))
    assert "Jane" not in line
    secure = await stage.replica(public_url="https://history")
    await secure.sign_in(stage.provider)
    [line] = [line for line in secure.set_cookies if line.startswith("__Host-raykeeper_session=")]
    assert "Secure" in line
    assert "Domain" not in line


async def test_two_replicas_with_one_key_know_the_same_sessions(stage: Stage) -> None:
    first, second = await stage.replica(), await stage.replica()
    address = await first.begin()
    second.cookies = first.cookies
    entered = await second.get(path_of(stage.provider.sign_in(address)))
    assert entered.status == 303, "a login begun at one replica ends at the other"
    first.cookies = second.cookies
    assert await seen_by(first) == await seen_by(second) == {"team-blue"}


async def test_a_rotated_key_still_opens_and_a_withdrawn_one_does_not(stage: Stage) -> None:
    before = await stage.replica(cookie_keys=(OLD_KEY,))
    await before.sign_in(stage.provider)
    rotated, withdrawn = await stage.replica(cookie_keys=(KEY, OLD_KEY)), await stage.replica(cookie_keys=(KEY,))
    rotated.cookies, withdrawn.cookies = dict(before.cookies), dict(before.cookies)
    assert (await rotated.get("/sessions")).status == 200
    assert (await withdrawn.get("/sessions")).status == 303
    await rotated.sign_in(stage.provider)
    withdrawn.cookies = dict(rotated.cookies)
    assert (await withdrawn.get("/sessions")).status == 200, "new sessions are sealed with the first key"


async def test_a_session_is_refreshed_at_the_provider_and_groups_follow(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    first = browser.cookies["raykeeper_session"]
    stage.provider.person = {"sub": "jane", "name": "Jane", "groups": ["red"]}
    assert await seen_by(browser) == {"team-blue"}, "fresh enough not to ask"
    stage.clock.advance(500)
    assert await seen_by(browser) == {"team-blue", "team-red"}
    assert browser.cookies["raykeeper_session"] != first
    assert [form["grant_type"] for form in stage.provider.asked] == ["authorization_code", "refresh_token"]


async def test_requests_at_the_same_time_refresh_once(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    stage.clock.advance(500)
    cookie = f"raykeeper_session={browser.cookies['raykeeper_session']}"
    answers = await asyncio.gather(*(ask(browser.app, SESSIONS, headers={"Cookie": cookie}) for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert [form["grant_type"] for form in stage.provider.asked].count("refresh_token") == 1


async def test_who_is_locked_at_the_provider_is_out_after_the_life_of_a_session(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    stage.provider.refresh_tokens.clear()
    stage.clock.advance(500)
    assert (await browser.get("/sessions")).status == 200, "another replica may have refreshed it"
    stage.clock.advance(500)
    out = await browser.get("/sessions")
    assert (out.status, out.headers["location"]) == (303, "/login/start?next=/sessions")
    assert (await browser.get(SESSIONS, Accept="*/*")).status == 401


async def test_without_refresh_tokens_people_go_through_the_provider_again_unasked(stage: Stage) -> None:
    stage.provider.gives_refresh_token = False
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    stage.clock.advance(901)
    out = await browser.get("/sessions?namespace=x")
    assert out.headers["location"] == "/login/start?next=/sessions%3Fnamespace%3Dx"
    assert (await browser.sign_in(stage.provider)).status == 303
    assert (await browser.get("/sessions")).status == 200


async def test_everybody_signs_in_again_after_the_longest_time(stage: Stage) -> None:
    browser = await stage.replica(max_seconds=1000.0)
    await browser.sign_in(stage.provider)
    for _ in range(2):
        stage.clock.advance(499)
        assert (await browser.get("/sessions")).status == 200
    stage.clock.advance(3)
    assert (await browser.get("/sessions")).headers["location"] == "/login?next=/sessions"


async def test_a_provider_that_is_away_means_503_and_never_open(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    stage.provider.is_away_for_tokens = True
    stage.clock.advance(500)
    assert (await browser.get("/sessions")).status == 200, "it was checked minutes ago"
    stage.clock.advance(500)
    assert (await browser.get("/sessions")).status == 503
    stage.provider.is_away_for_tokens = False
    assert (await browser.get("/sessions")).status == 200
    other = await stage.replica()
    stage.provider.is_away = True
    assert (await other.get("/login/start")).status == 503


async def test_signing_out_ends_the_session_here_and_at_the_provider(stage: Stage) -> None:
    browser, other = await stage.replica(), await stage.replica()
    await browser.sign_in(stage.provider)
    copied = dict(browser.cookies)
    other.cookies = dict(copied)
    out = await browser.send("POST", "/logout", Origin="http://history", Sec_Fetch_Site="same-origin")
    assert out.status == 200
    assert f"{stage.provider.url}/end?client_id={CLIENT}" in out.headers["refresh"]
    assert browser.cookies == {}
    browser.cookies = copied
    assert (await browser.get("/sessions")).status == 303, "this replica knows that it ended"
    assert (await other.get("/sessions")).status == 200, "another one does not, for the rest of its short life"
    stage.clock.advance(901)
    assert (await other.get("/sessions")).status == 303, "it cannot be refreshed: the provider forgot the token"


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}]
)
async def test_another_site_can_sign_nobody_out(stage: Stage, headers: dict[str, str]) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    assert (await browser.send("POST", "/logout", b"", **headers)).status == 403
    assert (await browser.get("/logout")).status == 403
    assert (await browser.get("/sessions")).status == 200


async def test_another_site_can_sign_nobody_in_as_somebody_else(stage: Stage) -> None:
    """Login CSRF: a victim's browser is sent to the callback of a login that an attacker began."""
    attacker, victim = await stage.replica(), await stage.replica()
    callback = path_of(stage.provider.sign_in(await attacker.begin()))
    refused = await victim.get(callback)
    assert refused.status == 403
    assert "not begun here" in refused.text
    assert victim.cookies == {}
    await victim.begin()
    assert (await victim.get(callback)).status == 403, "nor with a login of its own under way"


async def test_a_state_is_good_once(stage: Stage) -> None:
    browser = await stage.replica()
    address = await browser.begin()
    kept = dict(browser.cookies)
    callback = path_of(stage.provider.sign_in(address))
    assert (await browser.get(callback)).status == 303
    browser.cookies = kept
    assert (await browser.get(callback)).status == 403
    again = path_of(stage.provider.sign_in(address))
    assert (await browser.get(again)).status == 403, "with a new code, too"
    other = await stage.replica()
    other.cookies = kept
    assert (await other.get(callback)).status == 403, "a replica that knows of no state is told by the provider"


async def test_a_login_that_takes_too_long_is_begun_again(stage: Stage) -> None:
    browser = await stage.replica()
    callback = path_of(stage.provider.sign_in(await browser.begin()))
    stage.clock.advance(601)
    assert (await browser.get(callback)).status == 403


async def test_an_id_token_of_another_login_is_refused(stage: Stage) -> None:
    browser = await stage.replica()
    for nonce in ("of-another-login", None):
        stage.provider.changes = {"nonce": nonce}
        refused = await browser.sign_in(stage.provider)
        assert refused.status == 403
        assert "made for another login" in refused.text
        assert "raykeeper_session" not in browser.cookies


async def test_an_answer_of_another_provider_is_refused(stage: Stage) -> None:
    """Mix-up: the browser comes back with what another provider, which an attacker runs, sent it with."""
    browser = await stage.replica()
    for changes in ({"iss": "https://evil.example"}, {"iss": ""}):
        address = await browser.begin()
        refused = await browser.get(path_of(stage.provider.sign_in(address, **changes)))
        assert refused.status == 403
        assert "another identity provider" in refused.text
    address = await browser.begin()
    without = re.sub(r"&iss=[^&]*", "", path_of(stage.provider.sign_in(address)))
    assert "does not say which" in (await browser.get(without)).text
    assert stage.provider.asked == [], "no code is sent anywhere"


async def test_a_session_cannot_be_planted(stage: Stage) -> None:
    """Fixation: whatever cookie a browser has before, signing in gives it a new session of its own."""
    attacker, victim = await stage.replica(), await stage.replica()
    await attacker.sign_in(stage.provider)
    planted = attacker.cookies["raykeeper_session"]
    victim.cookies["raykeeper_session"] = planted
    stage.provider.person = {"sub": "bob", "name": "Bob", "groups": ["red"]}
    await victim.sign_in(stage.provider)
    assert victim.cookies["raykeeper_session"] != planted
    assert await seen_by(victim) == {"team-red"}
    assert await seen_by(attacker) == {"team-blue"}
    for forged in ("", "x", "a.b.c.d.e", planted[:-4] + "AAAA", "\xff"):
        victim.cookies = {"raykeeper_session": forged}
        assert (await victim.get(SESSIONS, Accept="*/*")).status == 401


async def test_a_cookie_of_one_kind_is_not_one_of_another(stage: Stage) -> None:
    browser = await stage.replica()
    await browser.begin()
    [attempt] = browser.cookies.values()
    browser.cookies = {"raykeeper_session": attempt}
    assert (await browser.get(SESSIONS, Accept="*/*")).status == 401


@pytest.mark.parametrize(
    "next_path", ["https://evil.example/", "//evil.example", "/%5Cevil.example", "/%09/evil.example", "javascript:x"]
)
async def test_the_login_leads_nowhere_else(stage: Stage, next_path: str) -> None:
    browser = await stage.replica()
    entered = await browser.sign_in(stage.provider, next_path)
    assert (entered.status, entered.headers["location"]) == (303, "/")


async def test_the_providers_answer_goes_to_the_configured_name_whatever_host_is_asked(stage: Stage) -> None:
    browser = await stage.replica()
    browser.host = "evil.example"
    moved = await browser.get("/login/start", X_Forwarded_Host="evil.example")
    assert moved.headers["location"] == "http://history/login/start?next=/&moved=1"
    address = (await browser.get("/login/start?moved=1")).headers["location"]
    assert "redirect_uri=http%3A%2F%2Fhistory%2Fauth%2Fcallback" in address
    assert "evil" not in address


async def test_who_signs_in_at_the_second_address_comes_back_to_it(stage: Stage) -> None:
    browser = await stage.replica(monitoring_url="http://history:3000")
    browser.host = "history:3000"
    moved = await browser.get("/login/start?next=/d/x")
    assert moved.headers["location"] == "http://history/login/start?next=/d/x&moved=monitoring"
    before_grafana = GuardedGrafana(text_response("Grafana"), lambda _: text_response("no", 401), browser.app)
    assert (await Browser(before_grafana, browser.host).get("/login/start?next=/d/x")).headers == moved.headers
    browser.host = "history"
    address = (await browser.get(path_of(moved.headers["location"]))).headers["location"]
    assert "redirect_uri=http%3A%2F%2Fhistory%2Fauth%2Fcallback" in address
    entered = await browser.get(path_of(stage.provider.sign_in(address)))
    assert (entered.status, entered.headers["location"]) == (303, "http://history:3000/d/x")
    none = await stage.replica()
    none.host = "history:3000"
    assert (await none.get("/login/start")).headers["location"] == "http://history/login/start?next=/&moved=1"


async def test_clocks_may_differ_by_seconds_and_no_more(stage: Stage) -> None:
    now = int(stage.clock.now().timestamp())
    for changes, status in (
        ({"exp": now - 5}, 303),
        ({"exp": now - 60}, 403),
        ({"iat": now + 5}, 303),
        ({"iat": now + 120}, 403),
        ({"nbf": now + 120}, 403),
    ):
        stage.provider.changes = changes
        browser = await stage.replica()
        assert (await browser.sign_in(stage.provider)).status == status, changes


@pytest.mark.parametrize("changes", [{"aud": "another"}, {"iss": "https://evil.example"}, {"exp": None}, {"sub": None}])
async def test_a_token_that_is_not_for_us_is_refused(stage: Stage, changes: dict[str, Any]) -> None:
    browser = await stage.replica()
    stage.provider.changes = changes
    assert (await browser.sign_in(stage.provider)).status == 403
    assert "raykeeper_session" not in browser.cookies


async def test_keys_of_the_provider_that_are_new_count_and_withdrawn_ones_do_not(stage: Stage) -> None:
    provider, browser = stage.provider, await stage.replica()
    withdrawn = provider.keys[0]
    assert (await browser.sign_in(provider)).status == 303
    provider.keys = [new_key("two")]
    stage.clock.advance(11)
    old = provider.token(key=withdrawn, kid="one", **provider.person)
    new = provider.token(kid="two", **provider.person)
    shown = [await ask(browser.app, SESSIONS, headers={"Authorization": f"Bearer {token}"}) for token in (new, old)]
    assert [answer.status for answer in shown] == [200, 403]


async def test_programs_show_id_tokens_or_the_static_token(stage: Stage) -> None:
    browser, provider = await stage.replica(), stage.provider
    tokens = {
        provider.token(sub="jane"): 200,
        "a-static-token-for-programs": 200,
        provider.token(sub="stranger"): 403,
        provider.token(sub="jane", aud="another"): 403,
        without_signature(provider.claims(sub="jane")): 403,
        "wrong": 403,
        "": 403,
    }
    for token, status in tokens.items():
        answered = await ask(browser.app, SESSIONS, headers={"Authorization": f"Bearer {token}"})
        assert answered.status == status, token
    jane = await ask(browser.app, SESSIONS, headers={"Authorization": f"Bearer {provider.token(sub='jane')}"})
    assert {one["namespace"] for one in jane.body["sessions"]} == {"team-blue"}


async def test_who_may_not_come_in_is_told_what_is_missing(stage: Stage) -> None:
    browser = await stage.replica()
    stage.provider.person = {"sub": "eve", "name": "Eve <b>", "email": "eve@example.org", "groups": ["blue"]}
    refused = await browser.sign_in(stage.provider)
    assert refused.status == 403
    for words in ("have no namespace on this server", "Eve &lt;b&gt;", "eve", "blue", "#ray-help"):
        assert words in refused.text
    assert "eve@example.org" not in refused.text, "an address that nobody verified is not shown as theirs"
    assert "raykeeper_session" not in browser.cookies


@pytest.mark.parametrize(
    ("person", "is_in"),
    [
        ({"sub": "a", "email": "a@example.org", "email_verified": True}, True),
        ({"sub": "a", "email": "A@Example.ORG", "email_verified": True}, True),
        ({"sub": "a", "email": "a@example.org", "email_verified": False}, False),
        ({"sub": "a", "email": "a@example.org", "email_verified": "true"}, False),
        ({"sub": "a", "email": "a@example.org"}, False),
        ({"sub": "a", "email": "a@evil.org", "email_verified": True}, False),
        ({"sub": "listed"}, True),
        ({"sub": "a", "groups": ["ops"]}, True),
        ({"sub": "a", "groups": "ops"}, True),
        ({"sub": "a", "groups": ["oops"]}, False),
        ({"sub": "a", "email": "kate@example.com", "email_verified": True}, True),
        ({"sub": "a", "email": "\u212aate@example.com", "email_verified": True}, False),  # a Kelvin sign
    ],
)
async def test_lists_of_people(stage: Stage, person: dict[str, Any], is_in: bool) -> None:
    rules = AccessRules(frozenset({"listed"}), frozenset({"*@example.org", "kate@example.com"}), frozenset({"ops"}))
    browser = await stage.replica(rules=rules)
    stage.provider.person = person
    assert ((await browser.sign_in(stage.provider)).status == 303) == is_in


async def test_a_change_of_the_rules_counts_for_sessions_that_are_there(stage: Stage) -> None:
    before = await stage.replica()
    await before.sign_in(stage.provider)
    after = await stage.replica(rules=AccessRules(frozenset({"another"})))
    after.cookies = before.cookies
    assert (await after.get("/sessions")).status == 403


async def test_what_a_provider_says_in_a_link_is_not_repeated(stage: Stage) -> None:
    browser = await stage.replica()
    address = await browser.begin()
    state = re.search(r"state=([^&]+)", address)
    assert state
    refused = await browser.get(
        f"/auth/callback?state={state[1]}&error=<script>&error_description=call+0800&iss={stage.provider.url}"
    )
    assert refused.status == 403
    assert "script>&" not in refused.text
    assert "0800" not in refused.text


async def test_a_token_can_be_typed_in(stage: Stage) -> None:
    browser = await stage.replica()
    body = b"token=a-static-token-for-programs&next=/sessions"
    assert (await browser.send("POST", "/login", body, Origin="http://evil.example")).status == 403
    assert (await browser.send("POST", "/login", b"token=wrong")).status == 403
    entered = await browser.send("POST", "/login", body, Origin="http://history")
    assert (entered.status, entered.headers["location"]) == (303, "/sessions")
    assert await seen_by(browser) == {"team-red", "team-blue", "team-green"}
    assert "a-static-token" not in str(browser.set_cookies)


async def test_a_cookie_that_would_be_too_long_leaves_the_refresh_token_out(stage: Stage) -> None:
    stage.provider.person = {"sub": "jane", "groups": [f"{'g' * 30}-{number}" for number in range(60)]}
    browser = await stage.replica()
    assert (await browser.sign_in(stage.provider)).status == 303
    assert max(map(len, browser.set_cookies)) < 4096


async def test_groups_that_no_rule_names_keep_nobody_out(stage: Stage) -> None:
    groups = [f"{'g' * 20}-{number}" for number in range(250)]
    stage.provider.person = {"sub": "somebody", "groups": [*groups, "red"]}
    browser = await stage.replica()
    assert (await browser.sign_in(stage.provider)).status == 303
    assert max(map(len, browser.set_cookies)) < 4096
    assert await seen_by(browser) == {"team-red"}
    stage.clock.advance(500)
    assert await seen_by(browser) == {"team-red"}
    assert stage.provider.asked[-1]["grant_type"] == "refresh_token"
    named = parse_namespace_map({"groups": {group: ["team-red"] for group in groups}})
    crowded = await stage.replica(rules=AccessRules(namespaces=named))
    assert (await crowded.sign_in(stage.provider)).status == 403, "a cookie cannot hold them"


async def test_a_user_name_that_is_an_address_counts_only_if_it_is_verified(stage: Stage) -> None:
    rules = AccessRules(namespaces=parse_namespace_map({"users": {"jane@example.org": ["team-red"]}}))
    oidc = OidcSettings(stage.provider.url, CLIENT, username_claim="email")
    for claims, status in (({"email_verified": True}, 303), ({}, 403), ({"email_verified": "true"}, 403)):
        stage.provider.person = {"sub": "eve", "email": "jane@example.org", **claims}
        browser = await stage.replica(rules=rules, oidc=oidc)
        assert (await browser.sign_in(stage.provider)).status == status, claims


async def test_logins_that_were_begun_and_left_do_not_fill_the_browser(stage: Stage) -> None:
    browser = await stage.replica()
    begun = [await browser.begin() for _ in range(20)]
    assert len(browser.cookies) == 5
    assert (await browser.get(path_of(stage.provider.sign_in(begun[0])))).status == 403
    assert (await browser.get(path_of(stage.provider.sign_in(begun[-2])))).status == 303


NESTED = b'{"error":' * 7_000


@pytest.mark.parametrize("status", [200, 400, 302])
@pytest.mark.parametrize("body", [NESTED, b"\xff", b"[" * 60_000, b'{"id_token":null}'], ids=lambda body: body[:20])
async def test_an_odd_answer_to_the_question_for_tokens_is_a_refusal(stage: Stage, status: int, body: bytes) -> None:
    browser = await stage.replica()
    stage.provider.odd_answers["/token"] = (status, body)
    assert (await browser.sign_in(stage.provider)).status == 403


@pytest.mark.parametrize("path", ["/keys", "/.well-known/openid-configuration"])
@pytest.mark.parametrize(
    "body", [b'{"keys":{}}', b'{"keys":null}', b'{"keys":[' * 50_000, NESTED], ids=lambda body: body[:20]
)
async def test_an_odd_description_of_the_provider_is_told_as_such(stage: Stage, path: str, body: bytes) -> None:
    browser = await stage.replica()
    stage.provider.odd_answers[path] = (200, body)
    refused = await browser.get("/login/start")
    assert (refused.status, "cannot be read" in refused.text) == (503, True), refused.text


async def test_each_look_is_noted_without_secrets(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    browser = await stage.replica()
    await browser.sign_in(stage.provider)
    with caplog.at_level("INFO", "raykeeper.history.audit"):
        await browser.get("/s/team-blue/train/session_2026-11-15_20-00-00_000000_team-blue/api/version?token=hidden")
        await browser.get("/s/team-red/train/session_x/")
        await ask(browser.app, "/sessions", headers={"Authorization": "Bearer wrong-secret"})
    lines = [record.raykeeper_fields for record in caplog.records if record.message == "look"]  # type: ignore[attr-defined]
    assert [(line["user"], line["namespace"], line["status"], line["is_let_in"]) for line in lines] == [
        ("jane", "team-blue", 200, True),  # not by the name that people give themselves
        ("jane", "team-red", 404, True),
        ("", "", 403, False),
    ]
    assert lines[0]["session"] == "team-blue/train/session_2026-11-15_20-00-00_000000_team-blue"
    assert not re.search("hidden|wrong-secret|raykeeper_session", json.dumps(lines))


async def test_people_sign_in_with_alibaba_ram(tmp_path: Path) -> None:
    async with a_stage(tmp_path, RamProvider) as stage:
        users = parse_namespace_map({"users": {"2000000000000002": ["team-red"]}})
        rules = AccessRules(uids=frozenset({"2000000000000002"}), namespaces=users)
        browser = await stage.replica("ram", rules=rules)
        address = await browser.begin()
        assert address.startswith(f"{stage.provider.url}/oauth2/v1/auth?")
        assert "scope=openid+aliuid+profile" in address
        assert "access_type=offline" in address
        assert (await browser.get(path_of(stage.provider.sign_in(address)))).status == 303
        assert await seen_by(browser) == {"team-red"}
        assert "Signed in as alice" in (await browser.get("/sessions")).text
        stage.clock.advance(500)
        assert await seen_by(browser) == {"team-red"}
        assert stage.provider.asked[-1]["grant_type"] == "refresh_token"
        out = await browser.send("POST", "/logout")
        assert "refresh" not in out.headers, "RAM has no such place"
        assert stage.provider.asked[-1].keys() >= {"token", "client_id", "client_secret"}
        stage.provider.person = {**stage.provider.person, "uid": "3000000000000003"}
        refused = await browser.sign_in(stage.provider)
        assert (refused.status, "3000000000000003" in refused.text) == (403, True)
        stage.provider.person = {**stage.provider.person, "uid": "2000000000000002"}
        stage.provider.changes = {"nonce": "of-another-login"}
        assert (await browser.sign_in(stage.provider)).status == 403
