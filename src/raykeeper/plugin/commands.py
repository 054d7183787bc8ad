"""`status`, `why` and `report`: each reads, decides what to say, and answers with an exit code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.client.connecting import Target, connected
from raykeeper.client.diagnosis import Diagnosis, Health, diagnose
from raykeeper.client.history import HistoryByUrl, HistoryServer, NoHistory, find_history, read_report
from raykeeper.client.observing import cluster_names, observe
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import Forbidden
from raykeeper.masking import masked_value
from raykeeper.plugin.screen import Line, diagnosis_lines, report_lines, write_lines
from raykeeper.plugin.subjects import Place, Subject, resolve

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube

WELL_OUTCOMES = ("ok", "running")


class ExitCode(IntEnum):
    """What every command ends with; docs/kubectl-raykeeper.md tells users."""

    WELL = 0
    NOT_WELL = 1
    """The object failed, waits, or is being deleted."""
    CANNOT_TELL = 2
    """The question could not be asked: command line, connection, rights."""
    UNKNOWN = 3
    """Neither Kubernetes nor the history knows such an object."""


class NothingKnown(RaykeeperError):
    """Neither Kubernetes nor the history knows it."""

    exit_code = ExitCode.UNKNOWN


@dataclass(frozen=True)
class Output:
    """Where lines go, and in which form."""

    write: Callable[[str], object]
    warn: Callable[[str], object]
    is_json: bool = False
    has_colours: bool = False

    def show(self, lines: list[Line]) -> None:
        write_lines(lines, self.write, has_colours=self.has_colours)

    def show_json(self, value: JSON) -> None:
        self.write(json.dumps(masked_value(value), indent=2, default=str) + "\n")


@dataclass(frozen=True)
class Scene:
    """Everything a command works with."""

    kube: Kube
    resource: Resource[JSON]
    key: ObjectKey
    history: HistoryServer | None

    @property
    def subject(self) -> str:
        return f"{self.resource.kind} {self.key}"


@asynccontextmanager
async def scene(place: Place, subject: Subject) -> AsyncIterator[Scene]:
    """Connected, and the subject's kind known. Raises RaykeeperError."""
    async with connected(Target(place.kubeconfig, place.context)) as kube:
        resource, key = await resolve(kube, subject, place.namespace or kube.connection.namespace)
        yield Scene(kube, resource, key, await _history(kube, place))


async def _history(kube: Kube, place: Place) -> HistoryServer | None:
    """By its address if one is set, else the one of our chart in this Kubernetes."""
    if place.history:
        return HistoryByUrl(place.history, place.history_token)
    return await find_history(kube, place.history_token)


async def status(place: Place, subject: Subject, output: Output) -> int:
    """One screen of health."""
    async with scene(place, subject) as around:
        seen = diagnose(await observe(around.kube, around.resource, around.key))
    _show_diagnosis(seen, output)
    return _exit_code(seen)


def _exit_code(seen: Diagnosis) -> int:
    if seen.health is Health.GONE:
        return ExitCode.UNKNOWN
    return ExitCode.WELL if seen.health.is_well else ExitCode.NOT_WELL


def _show_diagnosis(seen: Diagnosis, output: Output) -> None:
    if output.is_json:
        output.show_json(asdict(seen))
    else:
        output.show(diagnosis_lines(seen, datetime.now(UTC)))


async def why(place: Place, subject: Subject, output: Output) -> int:
    """The report on an object that lives or lived; without a history, what Kubernetes says."""
    async with scene(place, subject) as around:
        seen = diagnose(await observe(around.kube, around.resource, around.key))
        report = await _report_or_note(around, output)
    if report is None:
        if seen.health is Health.GONE:
            raise NothingKnown(f"neither Kubernetes nor a history knows {around.subject}")
        _show_why(seen, output)
        return _exit_code(seen)
    if output.is_json:
        output.show_json({"source": "history", "report": report, "diagnosis": asdict(seen)})
    else:
        output.show(report_lines(report))
        if not seen.health.is_well and seen.health is not Health.GONE:
            output.show([("", ""), *_short(seen)])
    return ExitCode.WELL if report.get("outcome") in WELL_OUTCOMES else ExitCode.NOT_WELL


def _show_why(seen: Diagnosis, output: Output) -> None:
    if output.is_json:
        output.show_json({"source": "kubernetes", "report": None, "diagnosis": asdict(seen)})
    else:
        output.show(diagnosis_lines(seen, datetime.now(UTC)))


def _short(seen: Diagnosis) -> list[Line]:
    """What Kubernetes says beside a report."""
    lines = seen.summary().split("\n")
    return [("In Kubernetes now", "bold"), *((f"  {line}", "") for line in lines)]


async def _report_or_note(around: Scene, output: Output) -> JSON | None:
    """None where there is no history, which is said once on stderr."""
    if around.history is None:
        output.warn("no history server is known (--history), this is what Kubernetes says")
        return None
    try:
        return await read_report_of(around)
    except NoHistory as exc:
        output.warn(f"no history: {exc}")
    except (Unavailable, Forbidden) as exc:
        output.warn(f"the history cannot be asked: {exc}")
    return None


async def read_report_of(around: Scene) -> JSON:
    """Raises NoHistory, Unavailable and ApiError; also where there is no history server."""
    if around.history is None:
        raise NoHistory("no history server is known: give --history, or install the chart ray-history-server")
    item = await around.kube.find(around.resource, around.key)
    clusters = cluster_names(around.resource.kind, item) if item else ()
    return await read_report(around.history, around.resource.kind, around.key, clusters)


async def report(place: Place, subject: Subject, output: Output) -> int:
    """The whole report, as the history server has it."""
    async with scene(place, subject) as around:
        try:
            found = await read_report_of(around)
        except NoHistory as exc:
            raise NothingKnown(str(exc)) from exc
    if output.is_json:
        output.show_json(found)
    else:
        output.show(report_lines(found))
    return ExitCode.WELL if found.get("outcome") in WELL_OUTCOMES else ExitCode.NOT_WELL
