"""Rules about the collector that ships a cluster's history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api.containers import HISTORY_COLLECTOR
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import containers, env_value, env_var
from raykeeper.api.rayclusteroptions import CollectorOptions
from raykeeper.operator.gates import Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.shared.history_problems import OPERATOR_ENV
from raykeeper.operator.shared.violations import Violation, is_missing, is_set

OPTIONS: Final = "historyServerOptions"
BACKEND_ENV: Final = "STORAGE_BACKEND"
BACKEND_NEEDS: Final = {
    "gcs": ("GCS_BUCKET",),
    "s3": ("S3_REGION",),
    "aliyunoss": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
"""What a collector cannot work without. A backend that is not listed may be a newer collector's: it is let through."""

AZURE_BACKEND: Final = "azureblob"
AZURE_MODE_ENV: Final = "AZURE_STORAGE_AUTH_MODE"
AZURE_CONNECTION_ENV: Final = "AZURE_STORAGE_CONNECTION_STRING"
AZURE_ACCOUNT_ENV: Final = "AZURE_STORAGE_ACCOUNT_URL"
AZURE_MODE_NEEDS: Final = {
    "connection_string": (AZURE_CONNECTION_ENV,),
    "workload_identity": (AZURE_ACCOUNT_ENV,),
    "default": (AZURE_ACCOUNT_ENV,),
}


def the_collector_is_complete(candidate: Candidate) -> Iterator[Violation]:
    options = candidate.spec.history_server_options
    if options is None:
        return
    yield from candidate.needs_gate(OPTIONS, Gate.HISTORY_SERVER)
    path = f"{candidate.path}.{OPTIONS}.collectorOptions"
    if options.collector_options is None:
        yield is_missing(path, "say which collector to run, or remove historyServerOptions")
    else:
        yield from _collector_options(path, options.collector_options)
    yield from _no_container_of_that_name(candidate)


def _collector_options(path: str, options: CollectorOptions) -> Iterator[Violation]:
    if not options.image:
        yield is_missing(f"{path}.image", "name the collector's image")
    env: JSON = {"env": options.env}
    for name in OPERATOR_ENV:
        if env_var(env, name):
            yield is_set(f"{path}.env[{name}]", "remove it, the operator writes it")
    backend = env_value(env, BACKEND_ENV)
    if not backend:
        yield is_missing(f"{path}.env[{BACKEND_ENV}]", "name the backend as a plain value, for instance S3")
    elif backend.lower() == AZURE_BACKEND:
        yield from _azure(path, env)
    else:
        yield from _needed(path, env, backend, BACKEND_NEEDS.get(backend.lower(), ()))


def _azure(path: str, env: JSON) -> Iterator[Violation]:
    mode = (env_value(env, AZURE_MODE_ENV) or "").strip().lower()
    if mode in AZURE_MODE_NEEDS:
        yield from _needed(path, env, mode, AZURE_MODE_NEEDS[mode])
    elif not _is_given(env, AZURE_CONNECTION_ENV) and not _is_given(env, AZURE_ACCOUNT_ENV):
        yield is_missing(f"{path}.env[{AZURE_CONNECTION_ENV}]", f"the backend needs it or {AZURE_ACCOUNT_ENV}")


def _needed(path: str, env: JSON, by: str, names: tuple[str, ...]) -> Iterator[Violation]:
    for name in names:
        if not _is_given(env, name):
            yield is_missing(f"{path}.env[{name}]", f"{by} needs it")


def _is_given(env: JSON, name: str) -> bool:
    """Whether a variable has a value, or says where to find one."""
    entry = env_var(env, name) or {}
    return bool(entry.get("value") or entry.get("valueFrom"))


def _no_container_of_that_name(candidate: Candidate) -> Iterator[Violation]:
    for group in candidate.groups:
        if any(container.get("name") == HISTORY_COLLECTOR for container in containers(group.spec.template)):
            field = f"{group.pod_path}.containers[{HISTORY_COLLECTOR}]"
            yield is_set(field, "the operator adds this container; remove it or choose another name")
