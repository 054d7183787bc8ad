"""Which namespaces a caller may see. What is about another namespace does not exist for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Visibility:
    """What one caller may see; two callers who may see the same have equal ones, so it can be a part of a key."""

    namespaces: frozenset[str] | None = None
    """None for all of them, also for those that come later."""

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def sees_each(self, namespaces: Iterable[str]) -> bool:
        return self.namespaces is None or self.namespaces.issuperset(namespaces)

    @property
    def is_everything(self) -> bool:
        return self.namespaces is None


EVERYTHING = Visibility()
NOTHING = Visibility(frozenset())
