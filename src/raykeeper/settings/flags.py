"""A flag as data, so that a program tells each of its own once: for the help, the reference page and the reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raykeeper.settings.values import parse_switch, parse_text


@dataclass(frozen=True)
class Flag:
    """One flag: how it is written, and what else means the same."""

    name: str
    help: str
    field: str = ""
    """Field of the program's configuration file that means the same; empty where there is none."""
    parse: Callable[[str, str], object] = parse_text
    default: str = ""
    """What applies where it is not given, for the help."""
    variable: str = ""
    """Environment variable that means the same; empty where there is none."""
    stands_for: str = ""
    """Name of the flag of which this is an older spelling; empty for a flag of today."""

    @property
    def spelling(self) -> str:
        return f"--{self.name}"

    @property
    def is_switch(self) -> bool:
        """Whether it may stand without a value, as booleans do."""
        return self.parse is parse_switch


def other_spelling(name: str, of: str, variable: str = "") -> Flag:
    """A flag that means another one, as older command lines call it."""
    return Flag(name, f"Other spelling of --{of}.", variable=variable, stands_for=of)
