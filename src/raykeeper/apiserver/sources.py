"""From the command line and the environment to the settings. Pure, but for the file that holds tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from raykeeper.api.syntax import is_dns_1123_label
from raykeeper.apiserver.flags import FLAGS, WITHOUT_EFFECT
from raykeeper.apiserver.settings import (
    AccessToken,
    ApiAccessSettings,
    ApiServerSettings,
    AuthMode,
    HeadSettings,
    KubeClientSettings,
)
from raykeeper.errors import Misconfigured
from raykeeper.oidc.settings import OidcSettings
from raykeeper.settings.addresses import Address, is_loopback, parse_address
from raykeeper.settings.arguments import parse_arguments
from raykeeper.settings.log_values import read_log_settings
from raykeeper.settings.sources import Sources
from raykeeper.settings.values import (
    parse_decimal,
    parse_duration,
    parse_integer,
    parse_optional_path,
    parse_switch,
    parse_text,
)
from raykeeper.settings.variables import Variables

LOCAL_HTTP, LOCAL_GRPC = "127.0.0.1:8888", "127.0.0.1:8887"
KUBERAY_HTTP, KUBERAY_GRPC = ":8888", ":8887"
SAFE_TOKEN_LENGTH = 16
"""Shorter ones can be guessed over a network. They are taken with a warning: KubeRay's examples have five digits."""


def read_settings(
    arguments: Sequence[str], environment: Mapping[str, str], *, as_kuberay: bool = False
) -> ApiServerSettings:
    """All settings. Raises `Misconfigured` naming the first flag or variable that cannot be used.

    As KubeRay's `kuberay-apiserver` it listens at all addresses, as existing manifests expect, and warns.
    """
    sources = Sources(FLAGS, parse_arguments(FLAGS, arguments), Variables(environment))
    http = _address(sources, "httpPortFlag", KUBERAY_HTTP if as_kuberay else LOCAL_HTTP)
    grpc = _address(sources, "rpcPortFlag", KUBERAY_GRPC if as_kuberay else LOCAL_GRPC)
    return ApiServerSettings(
        http=http,
        grpc=grpc,
        metrics=sources.read("metrics-addr", parse_address, None),
        call_seconds=sources.read("grpc_timeout", parse_duration, ApiServerSettings.call_seconds),
        cors_origin=sources.read("cors-allow-origin", parse_text, ""),
        v2=sources.read("enable-api-server-v2", parse_switch, True),
        access=_access(sources, (http, grpc), as_kuberay=as_kuberay),
        heads=HeadSettings(
            cluster_domain=sources.read("cluster-domain", parse_text, HeadSettings.cluster_domain),
            is_proxied=sources.read("use-kubernetes-proxy", parse_switch, False),
        ),
        kube=KubeClientSettings(
            kubeconfig=sources.read("kubeconfig", parse_optional_path, None),
            qps=sources.read("qps", parse_decimal, KubeClientSettings.qps),
            burst=sources.read("burst", parse_integer, KubeClientSettings.burst),
        ),
        logs=read_log_settings(sources),
        ignored=tuple(f"--{name}" for name in WITHOUT_EFFECT if name in sources.given),
    )


def _address(sources: Sources, flag: str, default: str) -> Address:
    said = sources.find(flag)
    setting, text = (said.setting, said.text) if said else (f"--{flag}", default)
    address = parse_address(setting, text)
    if address is None:
        raise Misconfigured(setting, text, "use host:port, or :port for all interfaces")
    return address


def _access(sources: Sources, addresses: Sequence[Address], *, as_kuberay: bool) -> ApiAccessSettings:
    mode = sources.read("auth", _parse_mode, "")
    impersonate = sources.read("impersonate", parse_switch, False)
    if impersonate and mode not in ("kubernetes", "oidc"):
        raise Misconfigured("--impersonate", "true", "it needs --auth=kubernetes or --auth=oidc, which know the caller")
    if mode == "token":
        return ApiAccessSettings("token", tokens=_tokens(sources))
    if mode == "kubernetes":
        audiences = sources.read("auth-audiences", _parse_list, ApiAccessSettings.audiences)
        return ApiAccessSettings("kubernetes", audiences=audiences, impersonate=impersonate)
    if mode == "oidc":
        return ApiAccessSettings("oidc", impersonate=impersonate, oidc=_oidc(sources))
    if mode:
        return ApiAccessSettings(cast(AuthMode, mode))
    if all(is_loopback(address.host) for address in addresses):
        return ApiAccessSettings(answers_localhost_only=True)
    if not as_kuberay:
        cure = "others could reach it with all our rights: say who may by --auth, or --auth=none if that is meant"
        raise Misconfigured("--httpPortFlag, --rpcPortFlag", [str(address) for address in addresses], cure)
    return ApiAccessSettings(is_undecided=True)


def _parse_mode(setting: str, text: str) -> str:
    if text not in ("", *get_args(AuthMode)):
        raise Misconfigured(setting, text, f"use {', '.join(get_args(AuthMode))}")
    return text


def _parse_list(setting: str, text: str) -> tuple[str, ...]:  # noqa: ARG001 - one of several parsers
    return tuple(part for part in (part.strip() for part in text.split(",")) if part)


def _tokens(sources: Sources) -> tuple[AccessToken, ...]:
    if text := sources.variables.text("RAYKEEPER_AUTH_TOKEN"):
        return (_token("RAYKEEPER_AUTH_TOKEN", text.strip()),)
    path = sources.read("auth-token-file", parse_optional_path, None)
    if path is None:
        raise Misconfigured("--auth", "token", "it needs --auth-token-file or RAYKEEPER_AUTH_TOKEN")
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise Misconfigured("--auth-token-file", str(path), f"it must be a readable text file ({exc})") from exc
    tokens = tuple(_token("--auth-token-file", line.strip()) for line in lines if line.strip())
    if not tokens:
        raise Misconfigured("--auth-token-file", str(path), "there is no token in it")
    return tokens


def _token(setting: str, line: str) -> AccessToken:
    token, space, rest = line.partition(" ")
    if not token.isascii() or not token.isprintable() or token.startswith("#"):
        raise Misconfigured(setting, "…", "a token is made of printable ASCII characters without spaces; no comments")
    namespaces = [part.strip() for part in rest.split(",")] if space else []
    if not all(is_dns_1123_label(name) for name in namespaces):
        # An empty list would stand for all namespaces.
        raise Misconfigured(setting, "…", "after a token and a space come names of namespaces, separated by commas")
    return AccessToken(token, frozenset(namespaces))


def _oidc(sources: Sources) -> OidcSettings:
    default = OidcSettings()
    settings = OidcSettings(
        issuer_url=sources.read("oidc-issuer-url", parse_text, ""),
        client_id=sources.read("oidc-client-id", parse_text, ""),
        username_claim=sources.read("oidc-username-claim", parse_text, default.username_claim),
        username_prefix=sources.read("oidc-username-prefix", parse_text, default.username_prefix),
        groups_claim=sources.read("oidc-groups-claim", parse_text, default.groups_claim),
        groups_prefix=sources.read("oidc-groups-prefix", parse_text, default.groups_prefix),
        required_claims=sources.read("oidc-required-claim", _parse_claims, default.required_claims),
        ca_file=sources.read("oidc-ca-file", parse_optional_path, None),
    )
    for name, value in (("--oidc-issuer-url", settings.issuer_url), ("--oidc-client-id", settings.client_id)):
        if not value:
            raise Misconfigured(name, "", "--auth=oidc needs it")
    return settings


def _parse_claims(setting: str, text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for part in _parse_list(setting, text):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise Misconfigured(setting, text, "use name=value, separated by commas")
        pairs.append((name, value))
    return tuple(pairs)
