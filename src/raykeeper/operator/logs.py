"""How the operator logs: KubeRay's flags and fields for it, in terms of our own logs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from raykeeper.logs import LogSettings
from raykeeper.operator.configuration import Configuration
from raykeeper.settings.log_values import parse_encoder, parse_log_level
from raykeeper.settings.values import parse_switch
from raykeeper.settings.variables import Variables


def log_settings(
    given: Mapping[str, str], variables: Variables, said: Configuration, name: Callable[[str], str]
) -> LogSettings:
    """Level, encoders and file. Raises `Misconfigured` naming the flag, field or variable that cannot be used."""
    return LogSettings(
        level=_level(given, variables),
        stdout_encoder=parse_encoder(name("logStdoutEncoder"), said.log_stdout_encoder or ""),
        file_path=Path(said.log_file) if said.log_file else None,
        file_encoder=parse_encoder(name("logFileEncoder"), said.log_file_encoder or ""),
    )


def _level(given: Mapping[str, str], variables: Variables) -> str:
    if "zap-log-level" in given:
        return parse_log_level("--zap-log-level", given["zap-log-level"])
    if text := variables.text("RAYKEEPER_LOG_LEVEL"):
        return parse_log_level("RAYKEEPER_LOG_LEVEL", text)
    is_development = parse_switch("--zap-devel", given.get("zap-devel", "false"))
    return "debug" if is_development else "info"
