"""ID tokens: the genuine ones name somebody, and nothing else does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.oidc import provider as provider_module
from raykeeper.oidc.errors import TokenRefused
from raykeeper.oidc.provider import BODY_BYTES, KEYS_SECONDS, REFETCH_SECONDS, RETRY_SECONDS, Provider
from raykeeper.oidc.settings import OidcSettings
from raykeeper.oidc.tokens import IdTokens, Named
from support.clocks import ManualClock
from support.conditions import until
from support.identity_providers import (
    CLIENT,
    SECRET,
    ScriptedProvider,
    a_provider,
    elliptic_key,
    new_key,
    signed_by_secret,
    without_signature,
)


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with a_provider() as provider:
        yield provider


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=datetime.now(UTC))


def checks(provider: ScriptedProvider, clock: ManualClock, **settings: Any) -> IdTokens:
    given = OidcSettings(**{"issuer_url": provider.url, "client_id": CLIENT, "username_prefix": "-", **settings})
    return IdTokens(given, Provider(given.issuer_url, clock), clock)


async def test_a_token_names_its_user(provider: ScriptedProvider, clock: ManualClock) -> None:
    assert await checks(provider, clock).verify(provider.token()) == Named("jane", ())


async def test_names_and_groups_carry_their_prefixes(provider: ScriptedProvider, clock: ManualClock) -> None:
    given = {"username_prefix": "oidc:", "groups_claim": "groups", "groups_prefix": "oidc:"}
    named = await checks(provider, clock, **given).verify(provider.token(groups=["blue", "green"]))
    assert named == Named("oidc:jane", ("oidc:blue", "oidc:green"))


async def test_without_a_prefix_the_issuer_is_one_as_in_kubernetes(
    provider: ScriptedProvider, clock: ManualClock
) -> None:
    assert (await checks(provider, clock, username_prefix="").verify(provider.token())).user == f"{provider.url}#jane"
    by_email = checks(provider, clock, username_prefix="", username_claim="email")
    assert (await by_email.verify(provider.token(email="jane@example.com"))).user == "jane@example.com"


async def test_one_group_may_be_a_plain_text(provider: ScriptedProvider, clock: ManualClock) -> None:
    named = await checks(provider, clock, groups_claim="groups").verify(provider.token(groups="blue"))
    assert named.groups == ("blue",)


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": None},
        {"exp": "tomorrow"},
        {"iss": "https://another.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": ["jane"]},
        {"sub": "system:admin"},
        {"sub": "jane\r\nImpersonate-Group: system:masters"},
        {"groups": ["system:masters"]},
        {"groups": [" system:masters"]},
        {"groups": ["blue", "system:masters "]},
        {"groups": [""]},
        {"sub": " system:admin"},
        {"sub": "jane "},
        {"groups": {"blue": True}},
        {"groups": ["blue", 5]},
    ],
    ids=repr,
)
async def test_claims_that_prove_nothing_are_refused(
    changes: dict[str, Any], provider: ScriptedProvider, clock: ManualClock
) -> None:
    with pytest.raises(TokenRefused):
        await checks(provider, clock, groups_claim="groups").verify(provider.token(**changes))


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -60), ("nbf", 600), ("iat", 600)])
async def test_a_token_is_good_in_its_time_alone(
    claim: str, seconds: int, provider: ScriptedProvider, clock: ManualClock
) -> None:
    changes: dict[str, Any] = {claim: int(time.time()) + seconds}
    with pytest.raises(TokenRefused):
        await checks(provider, clock).verify(provider.token(**changes))


@pytest.mark.parametrize("verified", [False, "true", 0, None], ids=repr)
async def test_an_email_that_nobody_verified_is_nobodys(
    verified: Any, provider: ScriptedProvider, clock: ManualClock
) -> None:
    token = provider.token(email="jane@example.com", **({} if verified is None else {"email_verified": verified}))
    by_email = checks(provider, clock, username_claim="email")
    if verified is None:  # Kubernetes takes a provider that says nothing about it
        assert (await by_email.verify(token)).user == "jane@example.com"
    else:
        with pytest.raises(TokenRefused, match="not verified"):
            await by_email.verify(token)


async def test_required_claims_must_be_there(provider: ScriptedProvider, clock: ManualClock) -> None:
    strict = checks(provider, clock, required_claims=(("tenant", "ours"),))
    assert await strict.verify(provider.token(tenant="ours"))
    for tenant in ("theirs", None):
        with pytest.raises(TokenRefused, match="'tenant'"):
            await strict.verify(provider.token(tenant=tenant))


async def test_signatures_of_others_are_refused(provider: ScriptedProvider, clock: ManualClock) -> None:
    ours = checks(provider, clock)
    stranger = new_key("one")
    public = provider.keys[0].as_pem(private=False)
    forged = [
        provider.token(key=stranger),
        without_signature(provider.claims()),
        signed_by_secret(provider.claims(), public, "one"),
        signed_by_secret(provider.claims(), SECRET.encode(), "secret"),
        provider.token()[:-6] + "AAAAAA",
        *("", "a", "a.b", "a.b.c", "....", "x" * 20_000, "é.é.é", provider.token() + ".more"),
    ]
    for token in forged:
        with pytest.raises(TokenRefused) as refusal:
            await ours.verify(token)
        assert len(token) < 10 or token not in str(refusal.value)


async def test_other_algorithms_with_public_keys_are_fine(provider: ScriptedProvider, clock: ManualClock) -> None:
    provider.keys.append(elliptic_key("two"))
    ours = checks(provider, clock)
    assert await ours.verify(provider.token(key=provider.keys[1], algorithm="ES256", kid="two"))
    assert await ours.verify(provider.token(algorithm="PS256"))


async def test_new_keys_are_found_and_withdrawn_ones_end(provider: ScriptedProvider, clock: ManualClock) -> None:
    ours = checks(provider, clock)
    old = provider.keys[0]
    await ours.verify(provider.token())
    provider.keys[:] = [new_key("two")]
    clock.advance(REFETCH_SECONDS)
    assert await ours.verify(provider.token(kid="two"))
    with pytest.raises(TokenRefused):
        await ours.verify(provider.token(key=old))


async def test_a_new_key_under_the_old_id_or_none_is_found(provider: ScriptedProvider, clock: ManualClock) -> None:
    ours = checks(provider, clock)
    await ours.verify(provider.token())
    provider.keys[:] = [new_key("one")]
    with pytest.raises(TokenRefused):
        await ours.verify(provider.token())
    clock.advance(REFETCH_SECONDS)
    assert await ours.verify(provider.token())
    provider.keys[:] = [new_key("two")]
    clock.advance(REFETCH_SECONDS)
    assert await ours.verify(provider.token(kid=None))


async def test_keys_may_arrive_in_pieces_but_not_without_end(provider: ScriptedProvider, clock: ManualClock) -> None:
    provider.comes_in_pieces = True
    assert await checks(provider, clock).verify(provider.token())
    provider.padding = BODY_BYTES
    with pytest.raises(Unavailable, match="more than"):
        await checks(provider, clock).verify(provider.token())


async def test_a_silent_provider_keeps_all_who_wait_for_it_waiting_once(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one in turn tried for ten seconds, so that the last of a hundred heard of it after a quarter of an hour."""
    monkeypatch.setattr(provider_module, "FETCH_SECONDS", RETRY_SECONDS + 0.2)
    provider.is_silent = True
    ours = IdTokens(OidcSettings(provider.url, CLIENT), Provider(provider.url, SystemClock()), SystemClock())
    outcomes = await asyncio.gather(*(ours.verify(provider.token()) for _ in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 5
    assert len(provider.fetched) == 1


async def test_while_the_provider_is_silent_its_last_keys_go_on(
    provider: ScriptedProvider, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "RENEWAL_SECONDS", 0.01)
    ours = checks(provider, clock)
    await ours.verify(provider.token())
    provider.is_silent = True
    clock.advance(KEYS_SECONDS + 1)
    token, before = provider.token(exp=int(clock.now().timestamp()) + 60), len(provider.fetched)
    for _ in range(5):
        assert await asyncio.wait_for(ours.verify(token), 5)
    assert len(provider.fetched) <= before + 1


async def test_who_gives_up_does_not_end_the_wait_of_others(provider: ScriptedProvider, clock: ManualClock) -> None:
    ours = checks(provider, clock)
    provider.is_silent = True
    impatient, patient = (asyncio.create_task(ours.verify(provider.token())) for _ in range(2))
    await until(lambda: bool(provider.fetched))
    impatient.cancel()
    provider.is_silent = False
    provider.speaks.set()
    assert await patient == Named("jane", ())


async def test_made_up_keys_do_not_make_us_ask_the_provider_each_time(
    provider: ScriptedProvider, clock: ManualClock
) -> None:
    ours = checks(provider, clock)
    await ours.verify(provider.token())
    for number in range(50):
        with pytest.raises(TokenRefused):
            await ours.verify(provider.token(key=provider.keys[0], kid=f"made-up-{number}"))
    assert provider.fetched.count("/keys") == 1


async def test_while_the_provider_is_away_its_last_keys_go_on(provider: ScriptedProvider, clock: ManualClock) -> None:
    ours = checks(provider, clock)
    await ours.verify(provider.token())
    provider.is_away = True
    clock.advance(KEYS_SECONDS + 1)
    assert await ours.verify(provider.token(exp=int(clock.now().timestamp()) + 60))


async def test_a_provider_that_was_never_there_is_unavailable_and_not_open(
    provider: ScriptedProvider, clock: ManualClock
) -> None:
    provider.is_away = True
    with pytest.raises(Unavailable, match="503"):
        await checks(provider, clock).verify(provider.token())


async def test_a_provider_that_answers_for_another_is_not_believed(
    provider: ScriptedProvider, clock: ManualClock
) -> None:
    provider.issuer = "https://another.example"
    with pytest.raises(Unavailable, match="it calls itself"):
        await checks(provider, clock).verify(provider.token())


@pytest.mark.parametrize("url", ["http://login.example.com", "ftp://x", "login", "", "https://a.example/?x=1"])
def test_an_issuer_must_be_reached_safely(url: str) -> None:
    with pytest.raises(Misconfigured):
        Provider(url, ManualClock())
