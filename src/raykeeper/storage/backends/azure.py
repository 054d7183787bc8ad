"""Azure Blob Storage: connection strings, account URLs and how to log in. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from raykeeper.storage.backends.backend import Backend, Environment, Field, HttpRequest, StoreSettings
from raykeeper.storage.backends.endpoints import parse_endpoint
from raykeeper.storage.backends.values import Given, Values

_DEFAULT_CONTAINER = "ray-historyserver"  # KubeRay's
_MODES = ("connection_string", "workload_identity", "default")
# The account that every Azurite has, and what `UseDevelopmentStorage=true` stands for in Azure's own clients.
_DEVELOPMENT = {
    "AccountName": "devstoreaccount1",
    "AccountKey": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "BlobEndpoint": "http://127.0.0.1:10000/devstoreaccount1",
}
_SHAPE = "it reads AccountName=…;AccountKey=…;EndpointSuffix=… or BlobEndpoint=…;SharedAccessSignature=…"


def _settings(values: Values, root: str, _: Environment) -> StoreSettings:
    """A container, reached with a connection string or with the environment's identity, which opendal finds itself."""
    container = values.text("bucket", _DEFAULT_CONTAINER)
    if _mode(values) == "connection_string":
        given = values.required("connection_string", "give the storage account's connection string, or its URL instead")
        return _from_connection_string(given, container, root)
    given = values.required("account_url", "give the storage account's URL, such as https://name.blob.core.windows.net")
    return StoreSettings(AZURE, container, root, parse_endpoint(given))


def _mode(values: Values) -> str:
    """How to log in: as said, else by what is given."""
    given = values.get("auth_mode")
    if given is None:
        return "default" if values.get("account_url") and not values.get("connection_string") else "connection_string"
    if given.text not in _MODES:
        raise given.refuse(f"use {', '.join(_MODES[:-1])} or {_MODES[-1]}")
    return given.text


def _from_connection_string(given: Given, container: str, root: str) -> StoreSettings:
    parts = _parse_connection_string(given)
    name, suffix = parts.get("AccountName", ""), parts.get("EndpointSuffix", "core.windows.net")
    protocol = parts.get("DefaultEndpointsProtocol", "https")
    address = parts.get("BlobEndpoint") or (name and f"{protocol}://{name}.blob.{suffix}")
    if not address:
        raise given.refuse(_SHAPE, shown="…")
    secrets = {"account_key": parts.get("AccountKey", ""), "sas_token": parts.get("SharedAccessSignature", "")}
    return StoreSettings(
        AZURE,
        container,
        root,
        parse_endpoint(Given(given.setting, address)),
        {"account_name": name} if name else {},
        {option: secret for option, secret in secrets.items() if secret},
    )


def _parse_connection_string(given: Given) -> dict[str, str]:
    """Its parts by Azure's names; the error never shows it, since it holds a key."""
    pairs = [part.partition("=") for part in given.text.strip().strip(";").split(";")]
    if not all(name and equals for name, equals, _ in pairs):
        raise given.refuse(_SHAPE, shown="…")
    parts = {name.strip(): value.strip() for name, _, value in pairs}
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        return _DEVELOPMENT
    if "AccountKey" not in parts and "SharedAccessSignature" not in parts:
        raise given.refuse(_SHAPE, shown="…")
    return parts


def _bucket_request(settings: StoreSettings) -> Callable[[datetime], HttpRequest] | None:
    if "account_key" not in settings.secrets or not settings.options:
        return None
    from raykeeper.storage.backends.azure_container import azure_container_request

    return partial(azure_container_request, settings)


AZURE = Backend(
    name="azureblob",
    scheme="azblob",
    fields=(
        Field("bucket", "AZURE_STORAGE_CONTAINER", "azureContainer"),
        Field("connection_string", "AZURE_STORAGE_CONNECTION_STRING", "azureConnectionString"),
        Field("account_url", "AZURE_STORAGE_ACCOUNT_URL", "azureAccountURL", in_url=True),
        Field("auth_mode", "AZURE_STORAGE_AUTH_MODE", "azureAuthMode", in_url=True),
    ),
    make_settings=_settings,
    opendal_scheme="azblob",
    bucket_option="container",
    bucket_request=_bucket_request,
)
