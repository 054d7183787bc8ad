"""`raykeeper report` itself: read a report, print it, and say by the exit code whether something failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.history.report.model import Report
from raykeeper.history.report.reading import parse_subject, report_from_server, report_from_store
from raykeeper.history.report.terminal import ReportScreen

NOTHING_FAILED, FAILURES, NO_REPORT = 0, 1, 2


@dataclass(frozen=True)
class ReportCommand:
    """What the command line said."""

    subject: str
    store: str = ""
    server: str = ""
    token_file: Path | None = None
    cache_dir: Path | None = None
    as_json: bool = False


class NoReport(Exception):
    """There is no report; the text says why."""


def run(command: ReportCommand, environment: Mapping[str, str], screen: ReportScreen) -> int:
    """Print the report; the exit code. Raises NoReport."""
    try:
        report = asyncio.run(_read(command, environment))
    except (RaykeeperError, OSError) as exc:
        raise NoReport(str(exc)) from exc
    if command.as_json:
        screen.show_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        screen.show(report)
    return NOTHING_FAILED if report.outcome.is_well else FAILURES


async def _read(command: ReportCommand, environment: Mapping[str, str]) -> Report:
    subject = parse_subject(command.subject)
    if bool(command.store) == bool(command.server):
        raise Misconfigured("--store", command.store, "give either --store or --server")
    if command.store:
        return await report_from_store(command.store, subject, environment, command.cache_dir)
    return await report_from_server(command.server, subject, _token(command.token_file, environment))


def _token(file: Path | None, environment: Mapping[str, str]) -> str:
    if file is None:
        return environment.get("RAYKEEPER_AUTH_TOKEN", "")
    try:
        return file.read_text().strip()
    except OSError as exc:
        raise Misconfigured("--token-file", str(file), f"it cannot be read: {exc.strerror}") from exc
