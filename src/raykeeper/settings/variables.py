"""Typed reading of environment variables. Pure: the environment is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raykeeper.errors import Misconfigured
from raykeeper.settings.values import parse_integer


@dataclass(frozen=True)
class Variables:
    """Typed reading of some environment; an empty variable counts as not set, as in KubeRay."""

    environment: Mapping[str, str]

    def text(self, name: str) -> str | None:
        return self.environment.get(name) or None

    def switch(self, name: str) -> bool | None:
        """`true` or `false` in any case. KubeRay takes anything else for the default; here it is refused by name."""
        text = self.text(name)
        if text is None:
            return None
        if text.lower() not in ("true", "false"):
            raise Misconfigured(name, text, "use true or false")
        return text.lower() == "true"

    def seconds(self, name: str, default: int, at_least: int = 1) -> int:
        text = self.text(name)
        if text is None:
            return default
        number = parse_integer(name, text)
        if number < at_least:
            raise Misconfigured(name, text, f"use a number of seconds above {at_least - 1}")
        return number

    def is_on(self, name: str) -> bool:
        """A switch that is off unless it is set."""
        return self.switch(name) is True

    def is_not_off(self, name: str) -> bool:
        """A switch that is on unless it is set to false."""
        return self.switch(name) is not False
