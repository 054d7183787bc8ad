"""Settings of a store from one URL without credentials, such as `s3://bucket/prefix?endpoint=http://minio:9000`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from raykeeper.errors import Misconfigured
from raykeeper.storage.settings.backends import MAKERS
from raykeeper.storage.settings.sources import given_variables
from raykeeper.storage.settings.storesettings import Backend, StoreSettings, parse_root
from raykeeper.storage.settings.values import Given, Values

_SETTING = "storage URL"
_BACKENDS: Mapping[str, Backend] = {
    "s3": "s3",
    "gs": "gcs",
    "azblob": "azureblob",
    "oss": "aliyunoss",
    "file": "local",
}
_PARAMETERS: Mapping[Backend, frozenset[str]] = {
    "s3": frozenset({"endpoint", "region", "path_style", "disable_ssl"}),
    "gcs": frozenset({"endpoint"}),
    "azureblob": frozenset({"account_url", "auth_mode"}),
    "aliyunoss": frozenset({"endpoint", "region"}),
    "local": frozenset(),
}


def parse_store_url(url: str, environment: Mapping[str, str]) -> StoreSettings:
    """The store a URL names; credentials, and what the URL leaves out, come from KubeRay's variables."""
    parts = urlsplit(url)
    backend = _BACKENDS.get(parts.scheme)
    if backend is None:
        raise Misconfigured(_SETTING, _without_secrets(parts), _cure_of_scheme(parts))
    if "@" in parts.netloc or parts.fragment:
        raise Misconfigured(
            _SETTING, _without_secrets(parts), "leave out credentials and fragment: use the environment"
        )
    return _local(parts) if backend == "local" else _in_bucket(backend, parts, environment)


def _cure_of_scheme(parts: SplitResult) -> str:
    if not parts.scheme and parts.path.startswith("/"):
        return f"a folder is written file://{parts.path}"
    return f"use one of {', '.join(f'{scheme}://' for scheme in _BACKENDS)}"


def _in_bucket(backend: Backend, parts: SplitResult, environment: Mapping[str, str]) -> StoreSettings:
    if not parts.netloc:
        raise Misconfigured(_SETTING, _without_secrets(parts), f"name the bucket: {parts.scheme}://bucket/prefix")
    given = given_variables(backend, environment) | _parameters(backend, parts)
    given["bucket"] = Given(_SETTING, parts.netloc)
    root = parse_root(_SETTING, unquote(parts.path))
    return MAKERS[backend](Values(given, {}), root, environment)


def _parameters(backend: Backend, parts: SplitResult) -> dict[str, Given]:
    found = dict(parse_qsl(parts.query))
    if unknown := found.keys() - _PARAMETERS[backend]:
        known = ", ".join(sorted(_PARAMETERS[backend])) or "none"
        cure = f"it has a parameter that {backend} does not know, which are: {known}; credentials go to the environment"
        raise Misconfigured(_SETTING, f"{_without_secrets(parts)}?{sorted(unknown)[0]}=…", cure)
    return {name: Given(f"{_SETTING} ?{name}", text) for name, text in found.items()}


def _local(parts: SplitResult) -> StoreSettings:
    if parts.netloc not in ("", "localhost") or not parts.path.strip("/") or parts.query:
        raise Misconfigured(_SETTING, _without_secrets(parts), "use file:///folder, an absolute path of this machine")
    return MAKERS["local"](Values({"bucket": Given(_SETTING, unquote(parts.path))}, {}), "", {})


def _without_secrets(parts: SplitResult) -> str:
    """The URL without user, password and query, which may hold keys that do not belong there."""
    before_host = f"{parts.scheme}://" if parts.scheme else "//" if parts.netloc else ""
    return f"{before_host}{parts.netloc.rpartition('@')[2]}{parts.path}"
