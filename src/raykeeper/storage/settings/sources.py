"""Settings of a store from KubeRay's environment variables and JSON file.

The environment beats the file; KubeRay lets the file win (docs/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.backend import Backend, StoreSettings, parse_root
from raykeeper.storage.backends.table import BY_NAME
from raykeeper.storage.backends.values import Given, Values


def read_store_settings(
    backend: str, root: str, environment: Mapping[str, str], config_file: Path | None = None
) -> StoreSettings:
    """The store that KubeRay's settings name. Stops by name on whatever cannot be used."""
    if (known := BY_NAME.get(backend.lower())) is None:
        raise Misconfigured("STORAGE_BACKEND", backend, f"use one of {', '.join(BY_NAME)}")
    given = _from_file(known, config_file) | given_variables(known, environment)
    variables = {field.name: field.variable for field in known.fields if field.variable}
    return known.make_settings(Values(given, variables), parse_root("STORAGE_ROOT_DIR", root), environment)


def given_variables(backend: Backend, environment: Mapping[str, str]) -> dict[str, Given]:
    """What the environment says about a backend; an empty variable says nothing."""
    names = {field.name: field.variable for field in backend.fields}
    return {field: Given(name, environment[name]) for field, name in names.items() if environment.get(name)}


def _from_file(backend: Backend, config_file: Path | None) -> dict[str, Given]:
    if config_file is None:
        return {}
    setting = "STORAGE_BACKEND_CONFIG_PATH"
    try:
        content = msgspec.json.decode(config_file.read_bytes(), type=dict[str, object])
    except OSError as exc:
        raise Misconfigured(setting, str(config_file), f"it must be a readable file ({exc.strerror})") from exc
    except msgspec.DecodeError as exc:
        raise Misconfigured(setting, str(config_file), f"it must hold one JSON object ({exc})") from exc
    keys = {field.name: field.file_key for field in backend.fields}
    return {field: _file_value(key, content[key]) for field, key in keys.items() if content.get(key) is not None}


def _file_value(key: str, value: object) -> Given:
    """KubeRay wants switches as the text "true"; a JSON boolean says the same."""
    if isinstance(value, bool):
        return Given(key, str(value).lower())
    if not isinstance(value, str):
        raise Misconfigured(key, "…", "it must be text")
    return Given(key, value)
