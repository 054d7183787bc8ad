"""Credentials are renewed before they end and after a refusal, and never more often than needed."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.kube.connect.credentials import Identity, Login, RenewedCredentials, token_end
from raykeeper.kube.connect.tls import TlsMaterial
from support.clocks import ManualClock


class Source:
    """Logins to be read one after the other."""

    def __init__(self, *logins: Login | Exception) -> None:
        self.logins = list(logins)
        self.read_times = 0

    async def read(self) -> Login:
        self.read_times += 1
        await asyncio.sleep(0)  # as every real source, it lets others run
        login = self.logins.pop(0) if len(self.logins) > 1 else self.logins[0]
        if isinstance(login, Exception):
            raise login
        return login


def a_login(token: str, expires_at: datetime | None = None, max_age: float | None = None) -> Login:
    return Login({"Authorization": f"Bearer {token}"}, None, "the token", expires_at, max_age)


def credentials(first: Login, source: Source, clock: ManualClock) -> RenewedCredentials:
    return RenewedCredentials("a file", source.read, first, clock)


async def test_a_file_is_read_again_after_its_age_and_not_before() -> None:
    clock, source = ManualClock(), Source(a_login("two", max_age=60))
    known = credentials(a_login("one", max_age=60), source, clock)
    clock.advance(59)
    assert (await known.current()).headers == {"Authorization": "Bearer one"}
    clock.advance(1)
    assert (await known.current()).headers == {"Authorization": "Bearer two"}


async def test_what_expires_is_renewed_a_little_before() -> None:
    clock = ManualClock()
    source = Source(a_login("two"))
    known = credentials(a_login("one", clock.now() + timedelta(minutes=10)), source, clock)
    clock.advance(9 * 60)
    await known.current()
    assert source.read_times == 0
    clock.advance(31)
    assert (await known.current()).headers == {"Authorization": "Bearer two"}


async def test_what_lives_for_seconds_is_not_renewed_for_every_request() -> None:
    clock = ManualClock()
    source = Source(a_login("two", clock.now() + timedelta(seconds=20)))
    known = credentials(a_login("one", clock.now() + timedelta(seconds=10)), source, clock)
    clock.advance(4)
    await known.current()
    assert source.read_times == 0
    clock.advance(1)
    await known.current()
    await known.current()
    assert source.read_times == 1


async def test_a_refused_identity_is_replaced_once_for_all_who_held_it() -> None:
    clock, source = ManualClock(), Source(a_login("two"))
    known = credentials(a_login("one"), source, clock)
    refused = await known.current()
    assert await known.renew(refused) is await known.renew(refused)
    assert source.read_times == 1


async def test_requests_refused_together_cause_one_reading_even_if_it_brings_nothing_new() -> None:
    source = Source(a_login("one"))
    known = credentials(a_login("one"), source, ManualClock())
    refused = await known.current()
    renewed = await asyncio.gather(*(known.renew(refused) for _ in range(20)))
    assert all(identity is refused for identity in renewed)
    assert source.read_times == 1


async def test_a_new_token_keeps_the_tls_context_and_so_the_open_connections() -> None:
    tls = TlsMaterial(verify=False)
    source = Source(replace(a_login("two"), tls=tls))
    known = credentials(replace(a_login("one"), tls=tls), source, ManualClock())
    first = await known.current()
    second = await known.renew(first)
    assert second.headers != first.headers
    assert second.tls is first.tls


async def test_the_same_token_again_is_the_same_identity() -> None:
    clock, source = ManualClock(), Source(a_login("one"))
    known = credentials(a_login("one"), source, clock)
    refused = await known.current()
    assert await known.renew(refused) is refused


async def test_a_failed_renewal_keeps_what_still_holds_and_is_tried_again_soon() -> None:
    clock = ManualClock()
    source = Source(Misconfigured("token", "file", "it is empty"), a_login("two"))
    known = credentials(a_login("one", max_age=60), source, clock)
    clock.advance(60)
    assert (await known.current()).headers == {"Authorization": "Bearer one"}
    await known.current()
    assert source.read_times == 1
    clock.advance(10)
    assert (await known.current()).headers == {"Authorization": "Bearer two"}


async def test_a_failed_renewal_of_what_has_ended_says_why() -> None:
    clock = ManualClock()
    source = Source(Misconfigured("kubeconfig", "file", "exec plugin aws failed"))
    known = credentials(a_login("one", clock.now() + timedelta(minutes=1)), source, clock)
    clock.advance(61)
    with pytest.raises(Unavailable, match=r"credentials from a file: .*exec plugin aws failed"):
        await known.current()


async def test_a_refused_identity_tells_whether_it_expired() -> None:
    clock = ManualClock()
    identity = Identity({}, None, "the token", expires_at=clock.now())
    assert identity.why_refused("a file", clock.now()) == "the token from a file expired at 2026-01-01T00:00:00Z"
    earlier = clock.now() - timedelta(seconds=1)
    assert identity.why_refused("a file", earlier) == "the token from a file is not accepted by the server"
    assert Identity({}, None, "").why_refused("a file", earlier).startswith("there are no credentials in a file")


@pytest.mark.parametrize("claims", [{"exp": 1767225600, "sub": "ÿþ?>"}, {"exp": 1767225600.5}])
def test_the_end_of_a_json_web_token_is_read_from_its_claims(claims: dict[str, object]) -> None:
    part = base64.urlsafe_b64encode(json.dumps(claims, ensure_ascii=False).encode()).rstrip(b"=").decode()
    end = token_end(f"e30.{part}.sig")
    assert end is not None
    assert end.replace(microsecond=0) == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "e30.e30.e30", "a.!.c"])
def test_the_end_of_an_opaque_token_is_not_known(token: str) -> None:
    assert token_end(token) is None
