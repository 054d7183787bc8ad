"""How loud a log is and how its lines look, as users write it in flags, variables and files."""

from __future__ import annotations

from raykeeper.errors import Misconfigured
from raykeeper.logs import Encoder, LogSettings
from raykeeper.settings.sources import Sources
from raykeeper.settings.values import parse_optional_path

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


def read_log_settings(sources: Sources) -> LogSettings:
    """By the flags of `log_flags.py`."""
    default = LogSettings()
    return LogSettings(
        level=sources.read("log-level", parse_log_level, default.level),
        stdout_encoder=sources.read("log-stdout-encoder", parse_encoder, default.stdout_encoder),
        file_path=sources.read("log-file-path", parse_optional_path, None),
        file_encoder=sources.read("log-file-encoder", parse_encoder, default.file_encoder),
    )
