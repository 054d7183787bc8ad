"""Where the value of a setting comes from: its flag, then its variable, then the default. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from raykeeper.settings.flags import Flag
from raykeeper.settings.variables import Variables

T = TypeVar("T")


class Said(NamedTuple):
    """What somebody said about a setting, and how they called it, so that messages call it the same."""

    setting: str
    text: str
    is_flag: bool


@dataclass(frozen=True)
class Sources:
    """A command line and an environment, asked by the name of a flag.

    An older spelling counts where that of today is not used by the same means; the table lists it further down.
    """

    flags: Sequence[Flag]
    given: Mapping[str, str]
    variables: Variables

    def find(self, name: str) -> Said | None:
        """What counts for this setting; None where nobody said anything."""
        return next(self._said(name), None)

    def find_text(self, name: str) -> Said | None:
        """The same, for a setting of which an empty text says nothing."""
        said = self.find(name)
        return said if said and said.text else None

    def read(self, name: str, parse: Callable[[str, str], T], default: T) -> T:
        """The value of this setting. Raises `Misconfigured` under the name by which it was given."""
        said = self.find(name)
        return default if said is None else parse(said.setting, said.text)

    def _said(self, name: str) -> Iterator[Said]:
        rows = [flag for flag in self.flags if name in (flag.name, flag.stands_for)]
        for flag in rows:
            if flag.name in self.given:
                yield Said(flag.spelling, self.given[flag.name], True)
        for flag in rows:
            if text := self.variables.text(flag.variable):
                yield Said(flag.variable, text, False)
