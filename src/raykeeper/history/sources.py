"""From the command line and the environment to the settings. Pure, but for the file that holds a token.

Which one counts: a flag, then an environment variable, then the store's file, which `storage/` reads, then the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast, get_args
from urllib.parse import urlsplit

from raykeeper.errors import Misconfigured
from raykeeper.history.flags import FLAGS, WITHOUT_EFFECT
from raykeeper.history.prices import PriceList, read_price_list
from raykeeper.history.settings import (
    AccessSettings,
    CacheSettings,
    FactsMode,
    GrafanaSettings,
    HistorySettings,
    HistoryStoreSettings,
    KubernetesSettings,
)
from raykeeper.settings.addresses import is_loopback, parse_address
from raykeeper.settings.arguments import parse_arguments
from raykeeper.settings.log_values import read_log_settings
from raykeeper.settings.sources import Sources
from raykeeper.settings.store_choice import read_store_choice
from raykeeper.settings.values import parse_mebibytes, parse_optional_path, parse_path, parse_text
from raykeeper.settings.variables import Variables

KUBERAY_BIND = ":8080"
_LEAST_TOKEN_LENGTH = 16  # of random characters: not to be guessed over a network
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LATER_MODES = ("oidc", "ram", "kubernetes")


def read_settings(
    arguments: Sequence[str], environment: Mapping[str, str], *, as_kuberay: bool = False
) -> HistorySettings:
    """All settings. Raises `Misconfigured` naming the first flag or variable that cannot be used.

    As KubeRay's `historyserver` it listens at all addresses, as existing manifests expect, and pages warn.
    """
    sources = Sources(FLAGS, parse_arguments(FLAGS, arguments), Variables(environment))
    bind = sources.read("bind", _parse_listener, KUBERAY_BIND if as_kuberay else HistorySettings.bind)
    monitoring_bind = sources.read("monitoring-bind", _parse_second_listener, "")
    access = _access(sources, bind, as_kuberay=as_kuberay)
    _check_second_listener(monitoring_bind, access)
    return HistorySettings(
        store=_store(sources),
        bind=bind,
        monitoring_bind=monitoring_bind,
        access=access,
        dashboard_dir=sources.read("dashboard-dir", parse_optional_path, None),
        cache=_cache(sources),
        grafana=_grafana(sources, monitoring_bind),
        prices=sources.read("price-list", _parse_price_list, None),
        kubernetes=_kubernetes(sources),
        logs=read_log_settings(sources),
        ignored=tuple(f"--{name}" for name in WITHOUT_EFFECT if name in sources.given),
    )


def _store(sources: Sources) -> HistoryStoreSettings:
    cure = "say where the history is, such as --store=s3://bucket/prefix or --store=file:///folder"
    return HistoryStoreSettings(*read_store_choice(sources, "store", Misconfigured("--store", "", cure), does="is"))


def _access(sources: Sources, bind: str, *, as_kuberay: bool) -> AccessSettings:
    mode, address = sources.read("auth", _parse_mode, ""), parse_address("--bind", bind)
    if mode == "token":
        return AccessSettings("token", _token(sources))
    is_local = is_loopback(address.host if address else None)
    if not mode and is_local:
        return AccessSettings("none", answers_localhost_only=True)
    if not mode and not as_kuberay:
        cure = "others could read all history there: give --auth=token, or --auth=none if that is meant"
        raise Misconfigured("--bind", bind, cure)
    return AccessSettings("none", is_undecided=not mode)


def _parse_mode(setting: str, text: str) -> str:
    if text in _LATER_MODES:
        raise Misconfigured(setting, text, "this version knows token and none; put a proxy that logs in in front")
    if text not in ("", "none", "token"):
        raise Misconfigured(setting, text, "use token or none")
    return text


def _token(sources: Sources) -> str:
    setting, text = "RAYKEEPER_AUTH_TOKEN", sources.variables.text("RAYKEEPER_AUTH_TOKEN") or ""
    if not text and (path := sources.read("auth-token-file", parse_optional_path, None)):
        setting = "--auth-token-file"
        try:
            text = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise Misconfigured(setting, str(path), f"it must be a readable text file ({exc})") from exc
    if len(text) < _LEAST_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        cure = f"--auth=token needs a token of at least {_LEAST_TOKEN_LENGTH} printable characters without spaces"
        raise Misconfigured(setting, "…" if text else "", cure)
    return text


def _cache(sources: Sources) -> CacheSettings:
    default = CacheSettings()
    return CacheSettings(
        folder=sources.read("cache-dir", parse_path, default.folder),
        max_bytes=sources.read("cache-mb", parse_mebibytes, default.max_bytes),
        query_memory_bytes=sources.read("query-memory-mb", parse_mebibytes, default.query_memory_bytes),
    )


def _check_second_listener(bind: str, access: AccessSettings) -> None:
    """Where nobody said who may read, both addresses must be loopback."""
    address = parse_address("--monitoring-bind", bind) if bind else None
    if address is not None and access.answers_localhost_only and not is_loopback(address.host):
        cure = "others could read there: give --auth=token, or --auth=none if that is meant"
        raise Misconfigured("--monitoring-bind", bind, cure)


def _parse_grafana_url(setting: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_usable = False
    if text and (not is_usable or parts.username is not None or not text.isprintable() or " " in text):
        shown = "…" if "@" in text else text
        raise Misconfigured(setting, shown, "use http://host:port or https://host, without a user and a password")
    return text.rstrip("/")


def _grafana(sources: Sources, monitoring_bind: str) -> GrafanaSettings:
    default, variables = GrafanaSettings(), sources.variables
    url = sources.read("grafana-url", _parse_grafana_url, default.url)
    address = parse_address("--monitoring-bind", monitoring_bind) if monitoring_bind else None
    if url and address is None:
        raise Misconfigured("--grafana-url", url, "it needs --monitoring-bind, the address that leads there")
    return GrafanaSettings(
        host=variables.text("RAY_GRAFANA_IFRAME_HOST") or variables.text("RAY_GRAFANA_HOST") or default.host,
        org_id=variables.text("RAY_GRAFANA_ORG_ID") or default.org_id,
        cluster_filter=variables.text("RAY_GRAFANA_CLUSTER_FILTER"),
        prometheus_name=variables.text("RAY_PROMETHEUS_NAME") or default.prometheus_name,
        url=url,
        port=address.port if url and address else default.port,
    )


def _kubernetes(sources: Sources) -> KubernetesSettings:
    default = KubernetesSettings()
    return KubernetesSettings(
        facts=sources.read("kubernetes-facts", _parse_facts_mode, default.facts),
        kubeconfig=sources.read("kubeconfig", parse_optional_path, None),
        namespaces=sources.read("kubernetes-namespaces", _parse_names, default.namespaces),
        lease_namespace=sources.read("kubernetes-lease-namespace", parse_text, default.lease_namespace),
        live_objects=sources.read("live-objects", _parse_facts_mode, default.live_objects),
    )


def _parse_facts_mode(setting: str, text: str) -> FactsMode:
    for mode in get_args(FactsMode):
        if text == mode:
            return cast(FactsMode, mode)
    raise Misconfigured(setting, text, "use on, off or auto")


def _parse_names(setting: str, text: str) -> tuple[str, ...]:
    """Names of namespaces, each once and in order, so that two spellings of the same are the same."""
    names = {name.strip() for name in text.split(",")} if text else set()
    if any(not _NAMESPACE.fullmatch(name) for name in names):
        raise Misconfigured(setting, text, "use names of namespaces, separated by commas")
    return tuple(sorted(names))


def _parse_price_list(setting: str, text: str) -> PriceList | None:
    path = parse_optional_path(setting, text)
    return read_price_list(setting, path) if path else None


def _parse_second_listener(setting: str, text: str) -> str:
    return _parse_listener(setting, text) if text else ""


def _parse_listener(setting: str, text: str) -> str:
    if parse_address(setting, text) is None:
        raise Misconfigured(setting, text, "use host:port, or :port for all interfaces")
    return text
