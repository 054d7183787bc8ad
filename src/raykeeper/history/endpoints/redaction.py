"""Secrets never leave: they are masked in every answer, whoever asks. Pure.

Values of `env_vars` in a runtime environment are masked by Ray's rule: names stay, values become `<redacted>`, and what
cannot be read is replaced as a whole. Ray does so for browsers only, because a live cluster's owner asks with the CLI;
a history server is asked by people who never had access to the cluster. In other texts, what looks like a secret is
masked by the patterns of docs/secrets.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from raykeeper.history.secretpatterns import MASK, is_secret_name, masked_text

_SECRETS = "env_vars"
_SPELLINGS = (_SECRETS, "envVars")
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
    """A row of the state or job API with the runtime environments and texts in it masked."""
    return {name: _MASKS[name](value) if name in _MASKS else value for name, value in row.items()}


def masked_deeply(value: Any) -> Any:
    """Any answer with every runtime environment, every text and every value of a telling name in it masked."""
    if isinstance(value, dict):
        return {name: _masked_member(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked_deeply(part) for part in value]
    return masked_text(value) if isinstance(value, str) else value


def _masked_member(name: Any, part: Any) -> Any:
    if name in _ENVIRONMENTS:
        return _ENVIRONMENTS[name](part)
    return MASK if isinstance(part, str) and part and is_secret_name(str(name)) else masked_deeply(part)


def masked_unknown(value: Any) -> Any:
    """An answer of any shape: texts, values of telling names, and `env_vars` wherever they stand are masked."""
    if isinstance(value, dict):
        return {name: _masked_unknown_member(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked_unknown(part) for part in value]
    return masked_unknown_text(value) if isinstance(value, str) else value


def masked_unknown_text(text: str) -> str:
    """A text that may be JSON: `env_vars` in it are masked too, and what has some and cannot be read as a whole."""
    if not any(name in text for name in _SPELLINGS):
        return masked_text(text)
    try:
        return json.dumps(masked_unknown(json.loads(text)))
    except ValueError:
        return MASK if text.lstrip()[:1] in ("{", "[") else masked_text(text)


def _masked_unknown_member(name: str, part: Any) -> Any:
    if name in _SPELLINGS and part:
        return dict.fromkeys(part, MASK) if isinstance(part, dict) else MASK
    return MASK if isinstance(part, str) and part and is_secret_name(name) else masked_unknown(part)


def _masked_environment_member(value: Any) -> Any:
    return masked_environment_text(value) if isinstance(value, str) else value


def _masked_info(value: Any) -> Any:
    if not isinstance(value, dict) or "serialized_runtime_env" not in value:
        return value
    return {**value, "serialized_runtime_env": _masked_environment_member(value["serialized_runtime_env"])}


_ENVIRONMENTS = {
    "runtime_env": masked_environment,
    "runtimeEnv": masked_environment,
    "serialized_runtime_env": _masked_environment_member,
    "serializedRuntimeEnv": _masked_environment_member,
    "runtime_env_info": _masked_info,
}
_TEXTS = ("message", "error_message", "entrypoint", "exit_detail", "metadata", "death_cause", "custom_fields")
"""Members of rows that people's programs write."""
_MASKS = {**_ENVIRONMENTS, **dict.fromkeys(_TEXTS, masked_deeply)}
