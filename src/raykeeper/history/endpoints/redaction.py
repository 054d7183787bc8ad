"""Secrets never leave: values of `env_vars` in a runtime environment are masked in every answer. Pure.

Ray masks them for browsers only, because a live cluster's owner asks with the CLI. A history server is asked by people
who never had access to the cluster, so it masks for everybody, by Ray's rule: names stay, values become `<redacted>`,
and what cannot be read is replaced as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

MASK = "<redacted>"

_SECRETS = "env_vars"
_CACHED_ENVIRONMENTS = 1024  # a session has few different ones, and each stands in thousands of rows


def masked_environment(environment: Any) -> Any:
    """A runtime environment with its secrets masked; what is no object is returned as it is."""
    if not isinstance(environment, dict) or not isinstance(environment.get(_SECRETS), dict):
        return environment
    return {**environment, _SECRETS: dict.fromkeys(environment[_SECRETS], MASK)}


@lru_cache(_CACHED_ENVIRONMENTS)
def masked_environment_text(text: str | None) -> str | None:
    """The same of a runtime environment written as JSON. One without secrets stays byte for byte."""
    if not text:
        return text
    try:
        environment = json.loads(text)
    except ValueError:
        return MASK
    if not isinstance(environment, dict):
        return MASK
    if _SECRETS not in environment:
        return text
    return json.dumps(masked_environment(environment), sort_keys=True)


def masked_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the state or job API with every runtime environment in it masked."""
    return {name: _MASKS[name](value) if name in _MASKS else value for name, value in row.items()}


def masked_deeply(value: Any) -> Any:
    """Any answer with every runtime environment in it masked, at whatever depth."""
    if isinstance(value, dict):
        return {name: _MASKS[name](part) if name in _MASKS else masked_deeply(part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked_deeply(part) for part in value]
    return value


def _masked_text(value: Any) -> Any:
    return masked_environment_text(value) if isinstance(value, str) else value


def _masked_info(value: Any) -> Any:
    if not isinstance(value, dict) or "serialized_runtime_env" not in value:
        return value
    return {**value, "serialized_runtime_env": _masked_text(value["serialized_runtime_env"])}


_MASKS = {
    "runtime_env": masked_environment,
    "runtimeEnv": masked_environment,
    "serialized_runtime_env": _masked_text,
    "serializedRuntimeEnv": _masked_text,
    "runtime_env_info": _masked_info,
}
