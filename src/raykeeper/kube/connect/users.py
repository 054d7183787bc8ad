"""Logging in as the user of a kubeconfig: client certificate, token, token file, exec plugin, OIDC or password."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raykeeper.clock import Clock
from raykeeper.kube.connect.credentials import Credentials, Login, RenewedCredentials, token_end
from raykeeper.kube.connect.execplugin import run_plugin
from raykeeper.kube.connect.kubeconfig import Kubeconfig, Section, read_kubeconfig
from raykeeper.kube.connect.oidc import current_id_token
from raykeeper.kube.connect.tls import TlsMaterial, certificate_end

TOKEN_FILE_MAX_AGE_SECONDS = 60.0
"""As for the token of a pod: whoever rotates the file does so well before the old one ends."""


async def kubeconfig_credentials(paths: Sequence[Path], context: str | None, clock: Clock) -> Credentials:
    """Credentials of a context. The files are read again whenever what they gave expires or is refused."""

    async def read() -> Login:
        return await log_in(read_kubeconfig(paths, context), clock.now())

    source = f"kubeconfig {read_kubeconfig(paths, context).source}"
    return RenewedCredentials(source, read, await read(), clock)


async def log_in(config: Kubeconfig, now: datetime) -> Login:
    """What the context's user shows to the server. Raises `Misconfigured` naming the file and the cause."""
    login = await _shown_by_user(config, now)
    headers = {**login.headers, **_impersonation(config.user)}
    tls = login.tls if str(config.cluster.fields.get("server", "")).startswith("https://") else None
    return replace(login, headers=headers, tls=tls)


async def _shown_by_user(config: Kubeconfig, now: datetime) -> Login:
    """The first of the ways that the user section offers, in client-go's order."""
    user, plain = config.user, _certificate_login(config)
    if path := user.fields.get("tokenFile"):
        login = _bearer(plain, (user.text("tokenFile") or "").strip(), f"the token in {path}")
        return replace(login, max_age_seconds=TOKEN_FILE_MAX_AGE_SECONDS)
    if token := user.fields.get("token"):
        return _bearer(plain, str(token).strip(), "the token")
    if "exec" in user.fields:
        return _exec_login(plain, await run_plugin(config), user)
    if provider := (user.fields.get("auth-provider") or {}).get("name"):
        if provider != "oidc":
            raise user.unusable(f"auth-provider {provider!r} is no longer supported by Kubernetes; use an exec plugin")
        return _bearer(plain, await current_id_token(config, now), "the OIDC id-token")
    if "username" in user.fields:
        pair = f"{user.fields['username']}:{user.fields.get('password', '')}".encode()
        basic = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return replace(plain, headers=basic, shown="the password")
    return plain


def _certificate_login(config: Kubeconfig) -> Login:
    """A login with the client certificate, where there is one, and nothing else."""
    cluster, user = config.cluster, config.user
    certificate, key = user.text("client-certificate"), user.text("client-key")
    tls = TlsMaterial(
        ca=cluster.text("certificate-authority"),
        certificate=certificate,
        key=key,
        verify=not cluster.fields.get("insecure-skip-tls-verify", False),
    )
    if certificate is None:
        return Login(tls=tls)
    return Login(tls=tls, shown="the client certificate", expires_at=certificate_end(certificate))


def _bearer(login: Login, token: str, shown: str, expires_at: datetime | None = None) -> Login:
    headers = {"Authorization": f"Bearer {token}"}
    return replace(login, headers=headers, shown=shown, expires_at=expires_at or token_end(token))


def _exec_login(login: Login, status: dict[str, Any], user: Section) -> Login:
    """A plugin's ExecCredential, which carries a token, a client certificate or both."""
    shown = f"the credential of exec plugin {user.fields['exec']['command']}"
    expires_at = _timestamp(status.get("expirationTimestamp"), user)
    if certificate := status.get("clientCertificateData"):
        tls = replace(login.tls or TlsMaterial(), certificate=certificate, key=status.get("clientKeyData"))
        login = replace(login, tls=tls, shown=shown, expires_at=expires_at or certificate_end(certificate))
    if token := status.get("token"):
        login = _bearer(login, token, shown, expires_at)
    if not token and not certificate:
        raise user.unusable(f"{shown} has neither a token nor a certificate")
    return login


def _timestamp(text: str | None, user: Section) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError as exc:
        raise user.unusable(f"its exec plugin's expirationTimestamp {text!r} is not a time") from exc


def _impersonation(user: Section) -> dict[str, str]:
    if not user.fields.get("as"):
        return {}
    if user.fields.get("as-groups") or user.fields.get("as-user-extra"):
        raise user.unusable("as-groups and as-user-extra are not supported, only as and as-uid")
    named = {"Impersonate-User": user.fields["as"], "Impersonate-Uid": user.fields.get("as-uid")}
    return {name: str(value) for name, value in named.items() if value}
