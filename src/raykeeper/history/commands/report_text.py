"""A report as lines for a person: coloured in a terminal, plain elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from raykeeper.history.report.model import Cause, Evidence, FailureGroup, Outcome, Report
from raykeeper.history.report.shape import how_often
from raykeeper.history.report.unstarted import NO_CLUSTER, NO_SESSION
from raykeeper.history.text import counted, without_ansi

_VERDICTS = {
    Outcome.OK: ("nothing failed", "bold green"),
    Outcome.FAILED: ("failed", "bold red"),
    Outcome.WITH_FAILURES: ("succeeded with failures", "bold yellow"),
    Outcome.STOPPED: ("stopped by its user", "bold yellow"),
    Outcome.RUNNING: ("running, nothing has failed so far", "bold green"),
    Outcome.FAILING: ("running with failures", "bold yellow"),
}
_RECOVERED = "succeeded, every failure was recovered by a retry"
_NOTHING_RAN = ("nothing is recorded that could have failed", "bold")
_GROUPS_SHOWN = 10
_LINES_SHOWN = 12


class ReportScreen:
    """Prints reports. Text out of a session is never read as markup."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)

    def show(self, report: Report) -> None:
        self._verdict(report)
        if report.root_cause:
            self._root_cause(report.root_cause)
        self._others(report)
        for group in report.groups[:_GROUPS_SHOWN]:
            self._group(group, report)
        if len(report.groups) > _GROUPS_SHOWN:
            more = counted(len(report.groups) - _GROUPS_SHOWN, "more group")
            self._say(f"\n{more}: see --json", "dim")
        if report.unknown:
            self._say("\nnot known", "bold")
            for unknown in report.unknown:
                self._say(f"  {unknown.what}: {unknown.text}")

    def show_json(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _verdict(self, report: Report) -> None:
        words, style = _NOTHING_RAN if report.is_blank else _VERDICTS[report.outcome]
        if report.session == NO_SESSION:
            self._say(f"{_unstarted(report)}: {words}", style)
            return
        words = _RECOVERED if report.is_recovered else words
        about = f"job {report.job}" if report.job else "session"
        self._say(f"{about} of {report.namespace}/{report.cluster}/{report.session}: {words}", style)
        counts = report.counts
        hidden = f", {counts.recovered:,} recovered by a retry" if counts.recovered else ""
        self._say(f"{counts.failures:,} of {counts.attempts:,} attempts failed{hidden}")
        for job in report.jobs:
            name = job.submission_id or job.job_id
            self._say(f"  job {name}: {job.status}{_code(job.exit_code)}", "dim")

    def _root_cause(self, cause: Cause) -> None:
        self._say("\nroot cause", "bold")
        self._say(f"  {cause.title} ({cause.confidence}{_at(cause.at)})", "red")
        self._evidence(cause.evidence)

    def _others(self, report: Report) -> None:
        others = report.causes[1:] if report.root_cause else report.causes
        if others:
            is_waiting = report.session == NO_SESSION and report.outcome is Outcome.RUNNING
            alone = "why it has not started" if is_waiting else "hidden by retries, or asked for"
            self._say("\nalso" if report.root_cause else f"\n{alone}", "bold")
        for cause in others:
            asked_for = ", asked for" if cause.is_intended else ""
            self._say(f"  {cause.title} ({cause.confidence}{_at(cause.at)}{how_often(cause)}{asked_for})")

    def _group(self, group: FailureGroup, report: Report) -> None:
        recovered = f", {group.recovered:,} recovered by a retry" if group.recovered else ""
        self._say(f"\n{group.title}", "bold")
        self._say(f"  {group.failures:,} of {group.error_type}{recovered}, {group.share:.2%} of all attempts")
        self._say(f"  {_time(group.first_at)} to {_time(group.last_at)}, {counted(len(group.nodes), 'node')}")
        functions = ", ".join(f"{function.name} ({function.failures:,})" for function in group.functions)
        self._say(f"  in {functions}")
        self._say(f"  because: {report.causes[group.cause].title} ({group.confidence})")
        if group.example:
            self._say(f"  first: task {group.example.task_id}, attempt {group.example.attempt_number}", "dim")
            self._quote(group.example.message)
            for log in group.example.logs:
                self._say(f"  {log.file}", "dim")
                self._quote(log.text)

    def _evidence(self, evidence: Iterable[Evidence]) -> None:
        for fact in evidence:
            self._say(f"  {fact.source}{_at(fact.at)}:", "dim")
            self._quote(fact.text)

    def _quote(self, text: str) -> None:
        """The last lines: what counts stands at the end of a traceback and of a log."""
        lines = text.splitlines()
        for line in [*["..."][: len(lines) > _LINES_SHOWN], *lines[-_LINES_SHOWN:]]:
            self._say(f"    | {line}")

    def _say(self, line: str, style: str = "") -> None:
        self._console.print(Text(_harmless(line), style or "default"))


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _harmless(line: str) -> str:
    """Without codes that a session's logs would give to the terminal."""
    return _CONTROL.sub("", without_ansi(line))


def _code(exit_code: int | None) -> str:
    return "" if exit_code is None else f", exit code {exit_code}"


def _at(time: datetime | None) -> str:
    return f", {_time(time)}" if time else ""


def _time(time: datetime | None) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if time else "unknown"


def _unstarted(report: Report) -> str:
    """What a report without a session is about."""
    if report.job is None:
        return f"cluster {report.namespace}/{report.cluster}, which has no session"
    has_cluster = report.cluster != NO_CLUSTER
    missing = f"whose cluster {report.cluster} has no session" if has_cluster else "which never had a cluster"
    return f"RayJob {report.namespace}/{report.job}, {missing}"
