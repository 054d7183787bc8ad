"""YAML that users write into a field of a spec, as the JSON that Ray takes. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from raykeeper.api.meta import JSON

MOST_NODES: Final = 100_000
"""Values in one text. Aliases let a few lines stand for billions, which would fill the memory when written out."""


def parse_mapping(text: str) -> JSON:
    """The mapping that a text is; empty where it has nothing but comments. Raises `ValueError` with what is wrong."""
    if not text.strip():
        return {}
    import yaml  # 25 ms, and most specs have no such text

    try:
        found: Any = yaml.safe_load(text)
        _check_size(found)
        plain: JSON = msgspec.json.decode(msgspec.json.encode({} if found is None else found), type=dict)
    except (yaml.YAMLError, TypeError, UnicodeError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is no YAML mapping that Ray could read: {error}") from error
    return plain


def _check_size(found: Any) -> None:
    left, count = [found], 0
    while left:
        value = left.pop()
        count += 1
        if count > MOST_NODES:
            raise ValueError(f"it stands for more than {MOST_NODES} values")
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
