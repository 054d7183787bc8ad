"""Settings of a store from KubeRay's environment variables and JSON file.

The environment beats the file; KubeRay lets the file win (docs/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from raykeeper.errors import Misconfigured
from raykeeper.storage.settings.backends import MAKERS
from raykeeper.storage.settings.storesettings import Backend, StoreSettings, parse_root
from raykeeper.storage.settings.values import Given, Values

VARIABLES: Mapping[Backend, Mapping[str, str]] = {
    "s3": {
        "bucket": "S3_BUCKET",
        "endpoint": "S3_ENDPOINT",
        "region": "S3_REGION",
        "path_style": "S3FORCE_PATH_STYLE",
        "disable_ssl": "S3DISABLE_SSL",
    },
    "gcs": {"bucket": "GCS_BUCKET"},
    "azureblob": {
        "bucket": "AZURE_STORAGE_CONTAINER",
        "connection_string": "AZURE_STORAGE_CONNECTION_STRING",
        "account_url": "AZURE_STORAGE_ACCOUNT_URL",
        "auth_mode": "AZURE_STORAGE_AUTH_MODE",
    },
    "aliyunoss": {"bucket": "OSS_BUCKET", "endpoint": "OSS_ENDPOINT", "region": "OSS_REGION"},
    "local": {"bucket": "LOCAL_STORAGE_DIR"},
}
"""Variables by our names of what they hold."""

FILE_KEYS: Mapping[Backend, Mapping[str, str]] = {
    "s3": {
        "bucket": "s3Bucket",
        "endpoint": "s3Endpoint",
        "region": "s3Region",
        "path_style": "s3ForcePathStyle",
        "disable_ssl": "s3DisableSSL",
    },
    "gcs": {"bucket": "gcsBucket"},
    "azureblob": {
        "bucket": "azureContainer",
        "connection_string": "azureConnectionString",
        "account_url": "azureAccountURL",
        "auth_mode": "azureAuthMode",
    },
    "aliyunoss": {"bucket": "ossBucket", "endpoint": "ossEndpoint", "region": "ossRegion"},
    "local": {"bucket": "localDir"},
}
"""Keys of the JSON file, likewise."""

_NAMES: Mapping[str, Backend] = {
    "s3": "s3",
    "gcs": "gcs",
    "azureblob": "azureblob",
    "aliyunoss": "aliyunoss",
    "local": "local",
    "file": "local",
}


def read_store_settings(
    backend: str, root: str, environment: Mapping[str, str], config_file: Path | None = None
) -> StoreSettings:
    """The store that KubeRay's settings name. Stops by name on whatever cannot be used."""
    if (known := _NAMES.get(backend.lower())) is None:
        raise Misconfigured("STORAGE_BACKEND", backend, f"use one of {', '.join(_NAMES)}")
    given = _from_file(known, config_file) | given_variables(known, environment)
    return MAKERS[known](Values(given, VARIABLES[known]), parse_root("STORAGE_ROOT_DIR", root), environment)


def given_variables(backend: Backend, environment: Mapping[str, str]) -> dict[str, Given]:
    """What the environment says about a backend; an empty variable says nothing."""
    names = VARIABLES[backend].items()
    return {field: Given(name, environment[name]) for field, name in names if environment.get(name)}


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
    keys = FILE_KEYS[backend].items()
    return {field: _file_value(key, content[key]) for field, key in keys if content.get(key) is not None}


def _file_value(key: str, value: object) -> Given:
    """KubeRay wants switches as the text "true"; a JSON boolean says the same."""
    if isinstance(value, bool):
        return Given(key, str(value).lower())
    if not isinstance(value, str):
        raise Misconfigured(key, "…", "it must be text")
    return Given(key, value)
