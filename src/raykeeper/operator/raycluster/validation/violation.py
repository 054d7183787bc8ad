"""What is wrong with a RayCluster, said so that its owner can mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from raykeeper.errors import InvalidSpec

INVALID_METADATA: Final = "InvalidRayClusterMetadata"
INVALID_SPEC: Final = "InvalidRayClusterSpec"
INVALID_STATUS: Final = "InvalidRayClusterStatus"
"""Reasons of the Warning events, as KubeRay spells them."""


@dataclass(frozen=True)
class Violation:
    """One broken rule. It prints as a sentence: the field, what was found there, what to do."""

    field: str
    found: str
    cure: str
    reason: str = INVALID_SPEC

    def __str__(self) -> str:
        return f"{self.field} {self.found}: {self.cure}"


def has_value(field: str, value: object, cure: str, reason: str = INVALID_SPEC) -> Violation:
    """The field's value is not acceptable."""
    return Violation(field, f"is {msgspec.json.encode(value).decode()}", cure, reason)


def is_set(field: str, cure: str) -> Violation:
    """The field must not be there. Its value is not told, for it may be a password."""
    return Violation(field, "is set", cure)


def is_missing(field: str, cure: str) -> Violation:
    """The field must be there."""
    return Violation(field, "is missing", cure)


def invalid_spec(violations: Sequence[Violation]) -> InvalidSpec:
    """One error that tells all of them, under the reason of the first."""
    return InvalidSpec(violations[0].reason, "; ".join(map(str, violations)))
