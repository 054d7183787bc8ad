"""What is missing in the settings of history by annotation, or makes no sense. Pure.

Each is told about every object that asks for history, and stops nothing: neither the operator nor a pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import env_var
from raykeeper.api.quantity import InvalidQuantity, parse_quantity
from raykeeper.api.syntax import is_dns_1123_label
from raykeeper.errors import Misconfigured
from raykeeper.operator.settings import HistorySettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.backends.table import BY_NAME
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.urls import parse_store_url

OSS_BACKEND: Final = "aliyunoss"
OPERATOR_ENV: Final = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
"""What only the operator may tell a collector."""

_IMAGE: Final = "--history-collector-image (chart: history.collector.image)"
_PULL_POLICY: Final = "--history-collector-image-pull-policy (chart: history.collector.imagePullPolicy)"
_RESOURCES: Final = "--history-collector-resources (chart: history.collector.resources)"
_STORE_URL: Final = "--history-store-url (chart: history.store.url)"
_STORE_VOLUME: Final = "--history-store-volume (chart: history.store.volume)"
_ENV: Final = "--history-env (chart: history.store.env)"
_BUCKET: Final = "--oss-bucket (chart: history.OSSBucket)"
_ENDPOINT: Final = "--oss-endpoint (chart: history.OSSEndPoint)"
_ROLE: Final = "--cloud-role-name (chart: history.CloudRoleName)"
_PROVIDER: Final = "--oidc-provider-arn (chart: history.OIDCProviderARN)"
_PREFIX: Final = "--service-account-prefix (chart: history.ServiceAccountPrefix)"

_IMAGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,1023}")
_PULL_POLICIES: Final = frozenset({"", "Always", "IfNotPresent", "Never"})
_ROLE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
PROVIDER_ARN: Final = re.compile(r"acs:ram::(?P<account>[0-9]+):oidc-provider/[A-Za-z0-9._-]+")
_KEYS_OF_OSS: Final = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ROLE_ARN")


def is_on_oss(settings: HistorySettings) -> bool:
    """Whether the history goes to OSS by the settings that Alibaba's documentation names."""
    return bool(settings.oss_bucket or settings.oss_endpoint or settings.oss_region or settings.oss_root_dir)


def problems(settings: HistorySettings) -> Iterator[str]:
    """All of them, each with its cure; the first is the one to tell."""
    yield from _collector_problems(settings)
    yield from _env_problems(settings)
    yield from _store_problems(settings)
    yield from _account_problems(settings)


def _collector_problems(settings: HistorySettings) -> Iterator[str]:
    """What the API server would refuse in every pod, or no kubelet could start."""
    if not settings.collector_image:
        yield f"{_IMAGE} is not set: name the image of the collector"
    elif not _IMAGE_NAME.fullmatch(settings.collector_image):
        yield f"{_IMAGE} is {settings.collector_image!r}: that is no name of an image"
    if settings.collector_image_pull_policy not in _PULL_POLICIES:
        yield f"{_PULL_POLICY} is {settings.collector_image_pull_policy!r}: use Always, IfNotPresent or Never"
    yield from _resource_problems(settings.collector_resources or {})


def _resource_problems(resources: JSON) -> Iterator[str]:
    if unknown := resources.keys() - {"limits", "requests"}:
        yield f"{_RESOURCES} has {min(unknown)!r}: it has limits and requests"
        return
    limits, requests = (resources.get(part) or {} for part in ("limits", "requests"))
    try:
        most, least = ({name: parse_quantity(text) for name, text in part.items()} for part in (limits, requests))
    except (InvalidQuantity, AttributeError) as error:
        yield f"{_RESOURCES} cannot be read: {error}"
        return
    for name in most.keys() & least.keys():
        if least[name].nano > most[name].nano:
            yield f"{_RESOURCES} asks for {requests[name]} of {name}, which is above the limit {limits[name]}"


def _env_problems(settings: HistorySettings) -> Iterator[str]:
    for variable in settings.env:
        name, has_text = variable["name"], isinstance(variable.get("value", ""), str)
        if not has_text or not isinstance(variable.get("valueFrom", {}), dict):
            yield f"{_ENV} has a {name} that is no text: put its value into quotes"
        if name in OPERATOR_ENV:
            yield f"{_ENV} sets {name}: remove it, the operator writes it"


def _store_problems(settings: HistorySettings) -> Iterator[str]:
    stores = list(_stores(settings))
    if not stores:
        yield f"no store is set: give {_STORE_URL} or {_BUCKET}"
    elif len(stores) > 1:
        yield f"{stores[0]} and {stores[1]} both say where the history goes: keep one"
    elif is_on_oss(settings):
        yield from _oss_problems(settings)
    else:
        yield from _other_store_problems(settings, stores[0])


def _stores(settings: HistorySettings) -> Iterator[str]:
    """Every setting that says where the history goes."""
    if settings.store_url:
        yield _STORE_URL
    for name in ("STORAGE_BACKEND", "RAYKEEPER_STORE_URL"):
        if env_var({"env": settings.env}, name):
            yield f"{name} in {_ENV}"
    if is_on_oss(settings):
        yield _BUCKET


def _oss_problems(settings: HistorySettings) -> Iterator[str]:
    if not settings.oss_bucket:
        yield f"{_BUCKET} is not set: name the bucket"
    if not settings.oss_endpoint and not settings.oss_region:
        yield f"{_ENDPOINT} is not set: give it, such as oss-cn-hangzhou-internal.aliyuncs.com, or --oss-region"
    has_keys = settings.secret_name or any(env_var({"env": settings.env}, name) for name in _KEYS_OF_OSS)
    if not settings.cloud_role_name and not has_keys:
        yield f"{_ROLE} is not set: name the role that may write to the bucket, or give keys by --history-secret-name"


def _other_store_problems(settings: HistorySettings, setting: str) -> Iterator[str]:
    try:
        _check_store(settings)
    except Misconfigured as error:
        yield f"{setting}: {error}"
    if store_folder(settings) and not settings.store_volume:
        yield f"{_STORE_VOLUME} is not set: the folder of {_STORE_URL} would end with each pod; name a shared volume"
    if settings.store_volume and len(settings.store_volume) > 1:
        yield f"{_STORE_VOLUME} must be one source of a volume, such as nfs"


def _check_store(settings: HistorySettings) -> None:
    """Read the settings as collectors will; what depends on Secrets is left to them. Raises `Misconfigured`."""
    if settings.secret_name or any("valueFrom" in variable for variable in settings.env):
        return
    environment = _literals(settings)
    url = settings.store_url or environment.get("RAYKEEPER_STORE_URL")
    if url:
        parse_store_url(url, environment)
    else:
        backend, root = environment.get("STORAGE_BACKEND", ""), environment.get("STORAGE_ROOT_DIR", "")
        read_store_settings(backend, root, environment)


def store_folder(settings: HistorySettings) -> str:
    """The folder that is the store; empty where the store is a bucket, or cannot be read."""
    environment = _literals(settings)
    url = settings.store_url or environment.get("RAYKEEPER_STORE_URL")
    backend = BY_NAME.get(environment.get("STORAGE_BACKEND", "").lower())
    try:
        store = parse_store_url(url, environment) if url else None
        if backend is LOCAL:
            store = read_store_settings(LOCAL.name, "", environment)
    except Misconfigured:
        return ""
    return store.bucket if store is not None and store.backend is LOCAL else ""


def _literals(settings: HistorySettings) -> dict[str, str]:
    """The variables that have plain values."""
    return {variable["name"]: str(variable["value"]) for variable in settings.env if "value" in variable}


def _account_problems(settings: HistorySettings) -> Iterator[str]:
    prefix, role, provider = settings.service_account_prefix, settings.cloud_role_name, settings.oidc_provider_arn
    if prefix and not is_dns_1123_label(prefix):
        yield f"{_PREFIX} is {prefix!r}: use lower-case letters, digits and dashes"
    if role and not _ROLE_NAME.fullmatch(role):
        yield f"{_ROLE} is {role!r}: give the name of a RAM role, not its ARN"
    if provider and not role:
        yield f"{_ROLE} is not set: {_PROVIDER} needs it"
    if provider and not PROVIDER_ARN.fullmatch(provider):
        yield f"{_PROVIDER} is {provider!r}: use acs:ram::ACCOUNT:oidc-provider/NAME"
