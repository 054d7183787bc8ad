"""From the command line and the environment to who may read. Pure, but for the files that hold secrets and the map."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from raykeeper.errors import Misconfigured
from raykeeper.history.access_rules import AccessRules, NamespaceMap, read_namespace_map
from raykeeper.history.settings import AccessSettings, AuthMode, LoginSettings
from raykeeper.oidc.settings import OidcSettings
from raykeeper.settings.addresses import parse_address
from raykeeper.settings.sources import Sources
from raykeeper.settings.values import parse_decimal, parse_optional_path, parse_switch, parse_text

RAM_ISSUER: Final = "https://oauth.aliyun.com"
"""Of Alibaba Cloud's site in China; the international one has another, which can be set."""
_LEAST_TOKEN_LENGTH: Final = 16  # of random characters: not to be guessed over a network
_LEAST_KEY_LENGTH: Final = 32
_MOST_KEYS: Final = 10
_MOST_CONTACT: Final = 300
_LEAST_SESSION_SECONDS: Final = 10.0
_MOST_HOURS: Final = 24 * 30.0
_NONE: Final[tuple[str, ...]] = ()
_UID: Final = re.compile(r"[\x21-\x7e]{1,255}")


def read_access(sources: Sources, modes: Sequence[AuthMode], *, is_audited: bool) -> AccessSettings:
    """What was said about access. `modes` has the way to sign in first. Raises `Misconfigured`."""
    mode, *also = modes
    token = _token(sources, needed_by="token") if "token" in modes else ""
    found = AccessSettings(mode, token, frozenset(also), is_audited=is_audited)
    if mode == "token":
        return found
    audiences = sources.read("token-audiences", _parse_list, _NONE)
    login = LoginSettings(
        contact=_contact(sources),
        cookie_keys=_cookie_keys(sources),
        session_seconds=_seconds(sources, "login-session-minutes", 60, LoginSettings.session_seconds),
        max_seconds=_seconds(sources, "login-max-hours", 3600, LoginSettings.max_seconds),
    )
    if login.session_seconds > login.max_seconds:
        cure = "it must not be longer than --login-max-hours"
        raise Misconfigured("--login-session-minutes", f"{login.session_seconds / 60:g}", cure)
    if mode in ("oidc", "ram"):
        login = _with_provider(sources, mode, login)
    return replace(found, audiences=audiences, login=login)


def _with_provider(sources: Sources, mode: AuthMode, login: LoginSettings) -> LoginSettings:
    issuer = sources.read("oidc-issuer-url", _parse_issuer, RAM_ISSUER if mode == "ram" else "")
    oidc = OidcSettings(
        issuer_url=issuer,
        client_id=sources.read("oidc-client-id", parse_text, ""),
        username_claim=sources.read("oidc-username-claim", parse_text, "upn" if mode == "ram" else "sub"),
        username_prefix=sources.read("oidc-username-prefix", parse_text, ""),
        groups_claim=sources.read("oidc-groups-claim", parse_text, "" if mode == "ram" else "groups"),
        groups_prefix=sources.read("oidc-groups-prefix", parse_text, ""),
        ca_file=sources.read("oidc-ca-file", parse_optional_path, None),
    )
    for name, value in (("oidc-issuer-url", oidc.issuer_url), ("oidc-client-id", oidc.client_id)):
        if not value:
            raise Misconfigured(f"--{name}", "", f"--auth={mode} needs it")
    rules, asks_kubernetes = _rules(sources), sources.read("login-reviews", parse_switch, False)
    if asks_kubernetes and rules.namespaces is not None:
        raise Misconfigured("--login-reviews", "true", "either Kubernetes or --namespace-map says who sees what")
    if not (asks_kubernetes or rules.has_lists or rules.namespaces):
        cure = (
            "whoever has an account there could read all history: give --login-allow-uids, --login-allow-emails, "
            "--login-allow-groups, --namespace-map or --login-reviews; --login-allow-uids=* if that is meant"
        )
        raise Misconfigured("--auth", mode, cure)
    public_url = _public_url(sources, mode)
    return replace(
        login,
        public_url=public_url,
        monitoring_url=_monitoring_url(sources, public_url),
        oidc=oidc,
        client_secret=_secret(sources, "RAYKEEPER_OIDC_CLIENT_SECRET", "oidc-client-secret-file"),
        cli_client_id=sources.read("oidc-cli-client-id", parse_text, ""),
        scopes=tuple(sources.read("oidc-scopes", parse_text, "").split()),
        rules=rules,
        asks_kubernetes=asks_kubernetes,
    )


def _rules(sources: Sources) -> AccessRules:
    emails = sources.read("login-allow-emails", _parse_emails, _NONE)
    return AccessRules(
        uids=frozenset(sources.read("login-allow-uids", _parse_list, _NONE)),
        emails=frozenset(email.lower() for email in emails),
        groups=frozenset(sources.read("login-allow-groups", _parse_list, _NONE)),
        namespaces=sources.read("namespace-map", _parse_map, None),
    )


def _parse_map(setting: str, text: str) -> NamespaceMap | None:
    path = parse_optional_path(setting, text)
    return read_namespace_map(setting, path) if path else None


def _parse_emails(setting: str, text: str) -> tuple[str, ...]:
    emails = _parse_list(setting, text)
    for email in emails:
        name, at, domain = email.rpartition("@")
        if not (name and at and domain) or ("*" in email and (name != "*" or "*" in domain)):
            raise Misconfigured(
                setting, text, "use e-mail addresses separated by commas, or *@example.org for a domain"
            )
    return emails


def _parse_list(setting: str, text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",")) if text else ()
    if not all(_UID.fullmatch(part) for part in found):
        raise Misconfigured(setting, text, "use names separated by commas")
    return found


def _parse_issuer(setting: str, text: str) -> str:
    url = urlsplit(text)
    is_local = url.scheme == "http" and url.hostname in ("localhost", "127.0.0.1", "::1")
    if text and (not url.hostname or url.query or url.fragment or not (url.scheme == "https" or is_local)):
        raise Misconfigured(setting, text, "use an https URL without a query")
    return text


def _public_url(sources: Sources, mode: AuthMode) -> str:
    """Alibaba's component is given a bare name, which browsers reach by http."""
    text = sources.read("public-url", parse_text, "")
    if not text:
        raise Misconfigured("--public-url", "", f"--auth={mode} needs it: where browsers reach this server")
    return _origin("--public-url", text if "://" in text else f"http://{text}")


def _monitoring_url(sources: Sources, public_url: str) -> str:
    """A session is a cookie, which browsers send to every port of a name and to no other name."""
    text, bind = (sources.read(name, parse_text, "") for name in ("monitoring-url", "monitoring-bind"))
    public, address = urlsplit(public_url), parse_address("--monitoring-bind", bind) if bind else None
    if not text:
        host = public.netloc.removesuffix(f":{public.port}")
        return f"{public.scheme}://{host}:{address.port}" if address else ""
    found = _origin("--monitoring-url", text)
    if (urlsplit(found).scheme, urlsplit(found).hostname) != (public.scheme, public.hostname):
        raise Misconfigured("--monitoring-url", text, f"it must be {public_url} with another port")
    return found


def _origin(setting: str, text: str) -> str:
    """Scheme, name and port of a URL that has nothing else."""
    url = urlsplit(text)
    try:
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable or url.path not in ("", "/") or url.query or url.fragment or url.username or url.password:
        raise Misconfigured(setting, text, "use a URL without a path, such as https://history.example.org")
    return f"{url.scheme}://{url.netloc.lower()}"


def _token(sources: Sources, *, needed_by: str) -> str:
    text = _secret(sources, "RAYKEEPER_AUTH_TOKEN", "auth-token-file")
    setting = "RAYKEEPER_AUTH_TOKEN"
    if not sources.variables.text(setting) and sources.read("auth-token-file", parse_optional_path, None):
        setting = "--auth-token-file"
    if len(text) < _LEAST_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        cure = f"--auth={needed_by} needs a token of at least {_LEAST_TOKEN_LENGTH} printable characters without spaces"
        raise Misconfigured(setting, "…" if text else "", cure)
    return text


def _secret(sources: Sources, variable: str, file_flag: str) -> str:
    """The content of a variable, or else of a file; empty where there is neither."""
    if text := sources.variables.text(variable):
        return text
    path = sources.read(file_flag, parse_optional_path, None)
    return _content(f"--{file_flag}", path) if path else ""


def _content(setting: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise Misconfigured(setting, str(path), f"it must be a readable text file ({exc})") from exc


def _cookie_keys(sources: Sources) -> tuple[str, ...]:
    keys = tuple(_secret(sources, "RAYKEEPER_COOKIE_KEYS", "cookie-key-file").replace(",", "\n").split())
    if len(keys) > _MOST_KEYS or any(len(key) < _LEAST_KEY_LENGTH or not key.isascii() for key in keys):
        cure = f"use up to {_MOST_KEYS} keys of at least {_LEAST_KEY_LENGTH} random characters, one in a line"
        raise Misconfigured("--cookie-key-file", "…", cure)
    return keys


def _contact(sources: Sources) -> str:
    text = sources.read("login-contact", parse_text, "")
    if len(text) > _MOST_CONTACT or not text.isprintable():
        raise Misconfigured("--login-contact", text[:50], f"use one line of at most {_MOST_CONTACT} characters")
    return text


def _seconds(sources: Sources, name: str, unit: int, default: float) -> float:
    number = sources.read(name, parse_decimal, default / unit)
    if not _LEAST_SESSION_SECONDS <= number * unit <= _MOST_HOURS * 3600:
        cure = f"it must be {_LEAST_SESSION_SECONDS:g} seconds at least, and {_MOST_HOURS:g} hours at most"
        raise Misconfigured(f"--{name}", f"{number:g}", cure)
    return number * unit
