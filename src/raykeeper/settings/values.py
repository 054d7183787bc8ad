"""Single values as users write them in flags and environment variables; a wrong one is refused by name."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from raykeeper.errors import Misconfigured

MIB = 1024 * 1024

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STEP = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_UNIT_SECONDS)})")
_DURATION = re.compile(rf"\+?(?:{_STEP.pattern})+")


def parse_text(setting: str, text: str) -> str:  # noqa: ARG001 - one of several parsers with the same arguments
    """Any text is fine."""
    return text


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


def parse_duration(setting: str, text: str) -> float:
    """Seconds in a duration of Go's, such as `1m30s`; nothing here lasts no time or less."""
    steps = _STEP.findall(text) if _DURATION.fullmatch(text) else []
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in steps)
    if not 0 < seconds < math.inf:
        raise Misconfigured(setting, text, "use a duration above 0, such as 30s, 5m or 1m30s")
    return seconds


def parse_mebibytes(setting: str, text: str) -> int:
    """Bytes in a whole number of MB, which are 2**20 bytes here as in KubeRay."""
    number = parse_integer(setting, text)
    if number < 1:
        raise Misconfigured(setting, text, "use a whole number of MB above 0")
    return number * MIB


def parse_path(setting: str, text: str) -> Path:
    """A file or folder, whether it is there or not."""
    if not text:
        raise Misconfigured(setting, text, "use a path")
    return Path(text)


def parse_optional_path(setting: str, text: str) -> Path | None:  # noqa: ARG001 - one of several parsers
    """The same, where an empty text means none."""
    return Path(text) if text else None


def parse_json_object(setting: str, text: str) -> dict[str, Any]:
    """One JSON object; an empty text means an empty one."""
    value = _parse_json(setting, text or "{}")
    if not isinstance(value, dict):
        raise Misconfigured(setting, text, "use one JSON object")
    return value


def parse_json_list(setting: str, text: str) -> list[Any]:
    """One JSON list; an empty text means an empty one."""
    value = _parse_json(setting, text or "[]")
    if not isinstance(value, list):
        raise Misconfigured(setting, text, "use one JSON list")
    return value


def _parse_json(setting: str, text: str) -> Any:
    import msgspec  # here alone: `--help` needs no JSON

    try:
        return msgspec.json.decode(text)
    except (ValueError, msgspec.DecodeError, RecursionError) as exc:
        raise Misconfigured(setting, text, f"it is no JSON ({exc})") from None
