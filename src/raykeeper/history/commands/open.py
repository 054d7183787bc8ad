"""`raykeeper open`: the address of a job, session or RayJob on a history server, for a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.commands.lists import last_failure, opened_lists
from raykeeper.history.commands.subjects import RayJobSubject, Source, Subject, ask_server, parse_subject
from raykeeper.history.urls import job_path, overview_path, rayjob_path

DEFAULT_SERVER = "http://127.0.0.1:8080"
"""Where `raykeeper history` listens when nobody says otherwise."""


class CannotOpen(RaykeeperError):
    """There is no page to open; the text says why, and what to do."""

    exit_code = 2


@dataclass(frozen=True)
class OpenCommand:
    """What the command line said."""

    subject: str
    """Empty: the job that failed last; where none failed, the start page."""
    source: Source


def page_address(command: OpenCommand, environment: Mapping[str, str]) -> str:
    """The whole address of the page. Raises CannotOpen and Misconfigured."""
    return asyncio.run(_address(command, environment))


async def _address(command: OpenCommand, environment: Mapping[str, str]) -> str:
    server = command.source.server.rstrip("/")
    subject = parse_subject(command.subject) if command.subject else None
    try:
        await ask_server(server, "/livez", command.source.token(environment))
        if subject is None:
            async with opened_lists(command.source, environment) as lists:
                subject = (await last_failure(lists)).subject
    except Unavailable as exc:
        cure = "start one with `raykeeper history --store=...`, or give --server"
        raise CannotOpen(f"no history server answers at {server}: {cure}") from exc
    return server + path_of(subject)


def path_of(subject: Subject | RayJobSubject | None) -> str:
    """Of the page about it. Pure."""
    if subject is None:
        return "/"
    if isinstance(subject, RayJobSubject):
        return rayjob_path(subject.namespace, subject.rayjob)
    return job_path(subject.session, subject.job) if subject.job else overview_path(subject.session)
