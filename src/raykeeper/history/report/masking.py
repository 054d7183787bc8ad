"""A report without secrets: every text in it is masked by the patterns of docs/secrets.md. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from raykeeper.history.secretpatterns import masked_text

T = TypeVar("T")


def without_secrets(part: T) -> T:
    """The same report, or part of one, with its texts masked. Fingerprints stay: they are made of the texts before."""
    masked: Any = _masked(part)
    found: T = masked
    return found


def _masked(part: Any) -> Any:
    if isinstance(part, str):
        # A word of ours, such as an outcome, is a text too, and of a type of its own.
        return masked_text(part) if type(part) is str else part
    if isinstance(part, tuple):
        return tuple(map(_masked, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{one.name: _masked(getattr(part, one.name)) for one in fields(part)})
    return part
