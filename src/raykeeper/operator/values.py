"""Single values as users write them in flags and environment variables; a wrong one is refused by name."""

from __future__ import annotations

import math

from raykeeper.errors import Misconfigured

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse_switch(setting: str, text: str) -> bool:
    """A boolean in one of Go's spellings."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise Misconfigured(setting, text, "use true or false")


def parse_integer(setting: str, text: str) -> int:
    """A whole number; 0x, 0o and 0b prefixes count, as in Go."""
    try:
        return int(text, 0)
    except ValueError:
        raise Misconfigured(setting, text, "use a whole number") from None


def parse_decimal(setting: str, text: str) -> float:
    """A finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Misconfigured(setting, text, "use a number")
    return number
