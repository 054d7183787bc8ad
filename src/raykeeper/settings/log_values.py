"""How loud a log is and how its lines look, as users write it in flags, variables and files."""

from __future__ import annotations

from raykeeper.errors import Misconfigured
from raykeeper.logs import Encoder

_LEVELS = {
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "panic": "critical",
}
_ENCODERS: dict[str, Encoder] = {"": "json", "json": "json", "console": "console"}


def parse_log_level(setting: str, text: str) -> str:
    """The level of that name; a number above 0 is a finer debug level to Go programs, and debug to us."""
    if text.isdecimal() and int(text) > 0:
        return "debug"
    if text.lower() not in _LEVELS:
        raise Misconfigured(setting, text, "use debug, info, warning, error or panic, or a number above 0")
    return _LEVELS[text.lower()]


def parse_encoder(setting: str, text: str) -> Encoder:
    """The shape of that name; an empty text is the default, as in Go."""
    if text not in _ENCODERS:
        raise Misconfigured(setting, text, "use json or console")
    return _ENCODERS[text]
