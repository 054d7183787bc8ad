"""Settings of a store from one URL without credentials, such as `s3://bucket/prefix?endpoint=http://minio:9000`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.backend import Backend, StoreSettings, parse_root
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.backends.table import BY_SCHEME
from raykeeper.storage.backends.values import Given, Values
from raykeeper.storage.settings.sources import given_variables

_SETTING = "storage URL"


def parse_store_url(url: str, environment: Mapping[str, str]) -> StoreSettings:
    """The store a URL names; credentials, and what the URL leaves out, come from KubeRay's variables."""
    parts = urlsplit(url)
    backend = BY_SCHEME.get(parts.scheme)
    if backend is None:
        raise Misconfigured(_SETTING, _without_secrets(parts), _cure_of_scheme(parts))
    if "@" in parts.netloc or parts.fragment:
        raise Misconfigured(
            _SETTING, _without_secrets(parts), "leave out credentials and fragment: use the environment"
        )
    return _local(parts) if backend is LOCAL else _in_bucket(backend, parts, environment)


def _cure_of_scheme(parts: SplitResult) -> str:
    if not parts.scheme and parts.path.startswith("/"):
        return f"a folder is written file://{parts.path}"
    return f"use one of {', '.join(f'{scheme}://' for scheme in BY_SCHEME)}"


def _in_bucket(backend: Backend, parts: SplitResult, environment: Mapping[str, str]) -> StoreSettings:
    if not parts.netloc:
        raise Misconfigured(_SETTING, _without_secrets(parts), f"name the bucket: {parts.scheme}://bucket/prefix")
    given = given_variables(backend, environment) | _parameters(backend, parts)
    given["bucket"] = Given(_SETTING, parts.netloc)
    root = parse_root(_SETTING, unquote(parts.path))
    return backend.make_settings(Values(given, {}), root, environment)


def _parameters(backend: Backend, parts: SplitResult) -> dict[str, Given]:
    found = dict(parse_qsl(parts.query))
    parameters = {field.name for field in backend.fields if field.in_url}
    if unknown := found.keys() - parameters:
        known = ", ".join(sorted(parameters)) or "none"
        cure = f"{backend.name} takes these parameters: {known}; credentials go to the environment"
        raise Misconfigured(_SETTING, f"{_without_secrets(parts)}?{sorted(unknown)[0]}=…", cure)
    return {name: Given(f"{_SETTING} ?{name}", text) for name, text in found.items()}


def _local(parts: SplitResult) -> StoreSettings:
    if parts.netloc not in ("", "localhost") or not parts.path.strip("/") or parts.query:
        raise Misconfigured(_SETTING, _without_secrets(parts), "use file:///folder, an absolute path of this machine")
    return LOCAL.make_settings(Values({"bucket": Given(_SETTING, unquote(parts.path))}, {}), "", {})


def _without_secrets(parts: SplitResult) -> str:
    """The URL without user, password and query, which may hold keys that do not belong there."""
    before_host = f"{parts.scheme}://" if parts.scheme else "//" if parts.netloc else ""
    return f"{before_host}{parts.netloc.rpartition('@')[2]}{parts.path}"
