"""What is wrong with an object of ours, said so that its owner can mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from raykeeper.errors import InvalidSpec

MOST_TOLD: Final = 20
"""Violations that are told at once. A spec may break a rule in each of its thousand groups."""
LONGEST_SHOWN: Final = 200
"""Characters of a field's name or value that are shown; users put whole files into either."""

Part = Literal["Metadata", "Spec", "Status"]
"""What of an object is wrong."""


@dataclass(frozen=True)
class Violation:
    """One broken rule. It prints as a sentence: the field, what was found there, what to do."""

    field: str
    found: str
    cure: str
    part: Part = "Spec"

    def reason(self, kind: str) -> str:
        """Of the Warning event about an object of that kind, as KubeRay spells it: `InvalidRayClusterSpec`."""
        return f"Invalid{kind}{self.part}"

    def __str__(self) -> str:
        return f"{_shortened(self.field)} {_shortened(self.found)}: {self.cure}"


def has_value(field: str, value: object, cure: str, part: Part = "Spec") -> Violation:
    """The field's value is not acceptable."""
    return Violation(field, f"is {msgspec.json.encode(value).decode()}", cure, part)


def is_set(field: str, cure: str) -> Violation:
    """The field must not be there. Its value is not told, for it may be a password."""
    return Violation(field, "is set", cure)


def is_missing(field: str, cure: str) -> Violation:
    """The field must be there."""
    return Violation(field, "is missing", cure)


def invalid_spec(kind: str, violations: Sequence[Violation]) -> InvalidSpec:
    """One error that tells what is wrong with an object of the kind, under the reason of the first violation."""
    told = [str(violation) for violation in violations[:MOST_TOLD]]
    rest = ["and more of the kind"] if len(violations) > MOST_TOLD else []
    return InvalidSpec(violations[0].reason(kind), "; ".join([*told, *rest]))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
