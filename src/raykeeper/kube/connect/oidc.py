"""ID tokens of an OpenID Connect provider, as the `auth-provider: oidc` of a kubeconfig asks for them."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from typing import Any

import aiohttp

from raykeeper.kube.connect.credentials import EARLY_SECONDS, token_end
from raykeeper.kube.connect.kubeconfig import Kubeconfig, Section
from raykeeper.kube.connect.tls import TlsMaterial, tls_context
from raykeeper.logs import Log

log = Log("raykeeper.kube.oidc")

PROVIDER_SECONDS = 30.0
"""For each of the two requests to the identity provider."""


async def current_id_token(config: Kubeconfig, now: datetime) -> str:
    """An ID token that is still good; refreshed, and written back as kubectl does, where the known one is not."""
    provider = Section(config.user.fields["auth-provider"].get("config") or {}, config.user.folder, config.source)
    known = provider.fields.get("id-token") or ""
    end = token_end(known)
    if known and (end is None or now + timedelta(seconds=EARLY_SECONDS) < end):
        return str(known)
    fresh = await _refresh(provider)
    provider.fields["id-token"] = fresh["id_token"]
    # Providers that hand out a new refresh token make the old one useless, also to kubectl.
    provider.fields["refresh-token"] = fresh.get("refresh_token") or provider.fields["refresh-token"]
    _save(config)
    return str(fresh["id_token"])


async def _refresh(provider: Section) -> dict[str, Any]:
    if not provider.fields.get("refresh-token"):
        raise provider.unusable("its OIDC id-token has expired and there is no refresh-token; log in again")
    issuer = str(provider.fields.get("idp-issuer-url", "")).rstrip("/")
    secret = aiohttp.encode_basic_auth(provider.fields.get("client-id", ""), provider.fields.get("client-secret", ""))
    try:
        tls = tls_context(TlsMaterial(ca=provider.text("idp-certificate-authority")))
        timeout = aiohttp.ClientTimeout(total=PROVIDER_SECONDS)
        async with aiohttp.ClientSession(trust_env=True, timeout=timeout, raise_for_status=True) as session:
            async with session.get(f"{issuer}/.well-known/openid-configuration", ssl=tls) as response:
                endpoint = (await response.json())["token_endpoint"]
            form = {"grant_type": "refresh_token", "refresh_token": provider.fields["refresh-token"]}
            async with session.post(endpoint, data=form, headers={"Authorization": secret}, ssl=tls) as response:
                answer: dict[str, Any] = await response.json()
    except (aiohttp.ClientError, TimeoutError, ssl.SSLError, ValueError, KeyError) as exc:
        raise provider.unusable(f"the OIDC provider {issuer} gives no new token ({exc!r})") from exc
    if "id_token" not in answer:
        raise provider.unusable(f"the OIDC provider {issuer} answered without an id_token")
    return answer


def _save(config: Kubeconfig) -> None:
    try:
        config.save()
    except OSError as exc:
        log.warning("refreshed token not written back", kubeconfig=config.source, cause=exc.strerror)
