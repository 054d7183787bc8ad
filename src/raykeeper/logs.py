"""Structured logs on the standard library: a constant message, values as fields, JSON or console lines.

`log.info("worker pod created", cluster=key)` reads the same in every program. structlog would do this too, at 19 MB.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from raykeeper.errors import Misconfigured

Encoder = Literal["json", "console"]
_FIELDS = "raykeeper_fields"
MIB = 1024 * 1024


class Log:
    """A named logger whose keyword arguments become fields of the line."""

    def __init__(self, name: str, /, **bound: object) -> None:
        self._logger = logging.getLogger(name)
        self._bound = bound

    def bind(self, **fields: object) -> Log:
        """The same logger with `fields` on every line."""
        return Log(self._logger.name, **{**self._bound, **fields})

    def debug(self, message: str, /, **fields: object) -> None:
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        self._write(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """An error line with the traceback of the exception being handled: only for our own bugs."""
        self._write(logging.ERROR, message, fields, exc_info=True)

    def _write(self, level: int, message: str, fields: dict[str, object], *, exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", message, exc_info=exc_info, extra={_FIELDS: {**self._bound, **fields}})


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a line. A named tuple, as an object's key is, is written as it prints and not as a list."""
    fields: dict[str, object] = getattr(record, _FIELDS, {})
    return {name: str(value) if hasattr(value, "_asdict") else value for name, value in fields.items()}


class JsonFormatter(logging.Formatter):
    """One JSON object a line, keyed as KubeRay's operator keys its own (`level`, `ts`, `logger`, `msg`)."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "ts": _timestamp(record),
            "logger": record.name,
            "msg": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ConsoleFormatter(logging.Formatter):
    """Tab-separated columns, fields as JSON at the end."""

    def format(self, record: logging.LogRecord) -> str:
        columns = [_timestamp(record), record.levelname, record.name, record.getMessage()]
        if fields := _fields(record):
            columns.append(msgspec.json.encode(fields, enc_hook=str).decode())
        if record.exc_info:
            columns.append("\n" + self.formatException(record.exc_info))
        return "\t".join(columns)


_FORMATTERS: dict[str, type[logging.Formatter]] = {"json": JsonFormatter, "console": ConsoleFormatter}


@dataclass(frozen=True)
class LogSettings:
    """Where log lines go and how they look."""

    level: str = "info"
    """Lowest level that is logged: debug, info, warning or error."""
    stdout_encoder: Encoder = "json"
    """Log format on standard output: json or console."""
    file_path: Path | None = None
    """Also write to this file, rotated at 500 MB with ten kept, as KubeRay's operator does."""
    file_encoder: Encoder = "json"
    """Log format in the file: json or console."""


FILE_MAX_BYTES = 500 * MIB
FILE_KEPT = 10


def set_up_logs(settings: LogSettings) -> None:
    """Point the root logger at stdout and, where asked, at a rotated file. Stops by name on a setting it cannot use."""
    level = logging.getLevelNamesMapping().get(settings.level.upper())
    if level is None:
        raise Misconfigured("log level", settings.level, "use debug, info, warning or error")
    stdout_format = _formatter("stdout encoder", settings.stdout_encoder)
    file_format = _formatter("file encoder", settings.file_encoder)
    handlers = [_with_format(logging.StreamHandler(sys.stdout), stdout_format)]
    if settings.file_path is not None:
        handlers.append(_with_format(_rotated(settings.file_path), file_format))
    logging.basicConfig(level=level, handlers=handlers, force=True)


def _rotated(path: Path) -> logging.Handler:
    try:
        return logging.handlers.RotatingFileHandler(
            path, maxBytes=FILE_MAX_BYTES, backupCount=FILE_KEPT, encoding="utf-8"
        )
    except OSError as exc:
        raise Misconfigured("log file path", str(path), f"it must be a writable file ({exc.strerror})") from exc


def _formatter(setting: str, encoder: str) -> logging.Formatter:
    if encoder not in _FORMATTERS:
        raise Misconfigured(setting, encoder, "use json or console")
    return _FORMATTERS[encoder]()


def _with_format(handler: logging.Handler, formatter: logging.Formatter) -> logging.Handler:
    handler.setFormatter(formatter)
    return handler
