"""Differences between KubeRay's children and ours that somebody looked at, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from rayclusters.compared_children import Difference


class Reviewed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Differences that are meant to be; names, paths and values may hold `*`."""

    why: str
    fields: list[str]
    clusters: list[str] = msgspec.field(default_factory=lambda: ["*"])
    theirs: str = "*"
    ours: str = "*"
    instead_of: dict[str, str] = {}
    """Parts of a text in our words -> in theirs; all else in it must be the same."""

    def covers(self, difference: Difference) -> bool:
        return (
            any(fnmatchcase(difference.cluster, pattern) for pattern in self.clusters)
            and any(fnmatchcase(difference.path, pattern) for pattern in self.fields)
            and fnmatchcase(str(difference.theirs), self.theirs)
            and fnmatchcase(str(difference.ours), self.ours)
            and (not self.instead_of or self._in_their_words(str(difference.ours)) == difference.theirs)
        )

    def _in_their_words(self, text: str) -> str:
        for our_words, their_words in self.instead_of.items():
            text = text.replace(our_words, their_words)
        return text


@dataclass
class Review:
    """Sorts differences into those that were reviewed and those that were not."""

    rules: list[Reviewed]
    unexplained: list[Difference] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> Review:
        return cls(msgspec.yaml.decode(path.read_bytes(), type=list[Reviewed]))

    def look_at(self, differences: Iterable[Difference]) -> None:
        for difference in differences:
            rules = [number for number, rule in enumerate(self.rules) if rule.covers(difference)]
            self.used.update(rules)
            if not rules:
                self.unexplained.append(difference)

    def unused(self) -> list[str]:
        """Reasons for differences that there are no more."""
        return [rule.why for number, rule in enumerate(self.rules) if number not in self.used]
