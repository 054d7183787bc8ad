"""How the operator logs: KubeRay's flags and fields for it, in terms of our own logs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from raykeeper.errors import Misconfigured
from raykeeper.logs import Encoder, LogSettings
from raykeeper.operator.configuration import Configuration
from raykeeper.operator.environment import Variables
from raykeeper.operator.values import parse_switch

_LEVELS = {
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "panic": "critical",
}
_ENCODERS: dict[str, Encoder] = {"": "json", "json": "json", "console": "console"}


def log_settings(
    given: Mapping[str, str], variables: Variables, said: Configuration, name: Callable[[str], str]
) -> LogSettings:
    """Level, encoders and file. Raises `Misconfigured` naming the flag, field or variable that cannot be used."""
    return LogSettings(
        level=_level(given, variables),
        stdout_encoder=_encoder(name("logStdoutEncoder"), said.log_stdout_encoder or ""),
        file_path=Path(said.log_file) if said.log_file else None,
        file_encoder=_encoder(name("logFileEncoder"), said.log_file_encoder or ""),
    )


def _level(given: Mapping[str, str], variables: Variables) -> str:
    if "zap-log-level" in given:
        return _parse_level("--zap-log-level", given["zap-log-level"])
    if text := variables.text("RAYKEEPER_LOG_LEVEL"):
        return _parse_level("RAYKEEPER_LOG_LEVEL", text)
    is_development = parse_switch("--zap-devel", given.get("zap-devel", "false"))
    return "debug" if is_development else "info"


def _parse_level(setting: str, text: str) -> str:
    """The level of that name; a number above 0 is a finer debug level to Go programs, and debug to us."""
    if text.isdecimal() and int(text) > 0:
        return "debug"
    if text.lower() not in _LEVELS:
        raise Misconfigured(setting, text, "use debug, info, warning, error or panic, or a number above 0")
    return _LEVELS[text.lower()]


def _encoder(setting: str, text: str) -> Encoder:
    if text not in _ENCODERS:
        raise Misconfigured(setting, text, "use json or console")
    return _ENCODERS[text]
