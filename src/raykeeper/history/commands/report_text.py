"""A report as lines for a person: coloured in a terminal, plain elsewhere. The first screen is the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from raykeeper.history.report.model import (
    Cause,
    Confidence,
    Evidence,
    Excerpt,
    FailureGroup,
    Headline,
    LineKind,
    Outcome,
    Report,
)
from raykeeper.history.report.shape import how_often
from raykeeper.history.report.unstarted import NO_SESSION
from raykeeper.history.report.words import attempts_in_words, shortened_lines, subject, verdict, whose
from raykeeper.history.text import counted, without_ansi

_STYLES = {
    Outcome.OK: "bold green",
    Outcome.FAILED: "bold red",
    Outcome.WITH_FAILURES: "bold yellow",
    Outcome.STOPPED: "bold yellow",
    Outcome.RUNNING: "bold green",
    Outcome.FAILING: "bold yellow",
}
_CONFIDENCE_STYLES = {
    Confidence.CONFIRMED: "bold green",
    Confidence.LIKELY: "bold yellow",
    Confidence.POSSIBLE: "bold magenta",
}
_LINE_STYLES = {
    LineKind.ERROR: "bold red",
    LineKind.OWN: "default",
    LineKind.FOLDED: "dim",
    LineKind.LOG: "default",
}
_PLAIN_WIDTH = 100  # where nobody says how wide the screen is
_LEAST_WIDTH, _TAB = 20, 4
_EXCERPTS_SHOWN, _EXCERPT_LINES, _ALSO_SHOWN, _UNKNOWN_SHOWN = 2, 10, 3, 2
_QUOTED_LINES = 12


class ReportScreen:
    """Prints reports. Text out of a session is never read as markup."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or default_console()

    def show(self, report: Report, *, is_full: bool = False) -> None:
        self._verdict(report)
        if report.headline:
            self._headline(report.headline)
        shown = report.excerpts if is_full else report.excerpts[:_EXCERPTS_SHOWN]
        for excerpt in shown:
            self._excerpt(excerpt, None if is_full else _EXCERPT_LINES)
        self._steps(report)
        if is_full:
            self._full(report)
        else:
            self._rest(report)

    def show_text(self, text: str) -> None:
        """As it is: for other programs."""
        self._console.print(Text(text), soft_wrap=True)

    def _verdict(self, report: Report) -> None:
        style = "bold red" if report.is_doubtful else _STYLES[report.outcome]
        self._say(f"{verdict(report)}: {subject(report)}", style)
        if counts := attempts_in_words(report):
            self._say(counts, "dim")

    def _headline(self, headline: Headline) -> None:
        self._say("")
        self._say(headline.text, "bold")
        for line in (whose(headline), headline.then):
            if line:
                self._say(line)
        badge = Text(f"[{headline.confidence.value}]", _CONFIDENCE_STYLES[headline.confidence])
        self._console.print(badge, Text(harmless(headline.basis), "dim"))

    def _excerpt(self, excerpt: Excerpt, limit: int | None) -> None:
        self._say("")
        self._say(f"{excerpt.title}{f':{excerpt.address.line}' if excerpt.address.line else ''}", "dim")
        for line in shortened_lines(excerpt, limit):
            number = f"{line.number:>5} " if line.number else "      "
            mark = ">" if line.kind is LineKind.ERROR else " "
            self._say(f"{number}{mark} {line.text}", _LINE_STYLES[line.kind], hanging=8)

    def _steps(self, report: Report) -> None:
        if len(report.steps) < 2:
            return
        self._say("\nstep by step", "dim")
        for number, step in enumerate(report.steps, 1):
            self._say(f"  {number}. {step.text}", hanging=5)

    def _rest(self, report: Report) -> None:
        """What the first screen leaves out, in a line each."""
        others = [cause for cause in _others(report) if not cause.is_intended]
        if others:
            self._say("")
            self._say(_alone(report) if not report.root_cause else "also", "dim")
        for cause in others[:_ALSO_SHOWN]:
            self._say(f"  {cause.title}{how_often(cause)}", hanging=4)
        for unknown in report.unknown[:_UNKNOWN_SHOWN] if report.headline is None else ():
            self._say(f"not known: {unknown.text}", "dim")
        left = len(report.groups) + max(0, len(others) - _ALSO_SHOWN) + len(report.unknown)
        if left:
            self._say("\nmore with --full", "dim")

    def _full(self, report: Report) -> None:
        if report.root_cause:
            self._say("\nevidence", "bold")
            self._evidence(report.root_cause.evidence)
        others = _others(report)
        if others:
            self._say("\nalso" if report.root_cause else f"\n{_alone(report)}", "bold")
        for cause in others:
            self._say(f"  {_cause_line(cause)}", hanging=4)
        for group in report.groups:
            self._group(group, report)
        if report.unknown:
            self._say("\nnot known", "bold")
            for unknown in report.unknown:
                self._say(f"  {unknown.what}: {unknown.text}", hanging=4)

    def _group(self, group: FailureGroup, report: Report) -> None:
        recovered = f", {group.recovered:,} recovered by a retry" if group.recovered else ""
        self._say(f"\n{group.title}", "bold")
        functions = ", ".join(f"{function.name} ({function.failures:,})" for function in group.functions)
        for line in (
            f"{group.failures:,} of {group.error_type}{recovered}, {group.share:.2%} of all attempts",
            f"{_time(group.first_at)} to {_time(group.last_at)}, {counted(len(group.nodes), 'node')}",
            f"in {functions}",
            f"because: {report.causes[group.cause].title} ({group.confidence.value})",
        ):
            self._say(f"  {line}", hanging=4)
        if group.example:
            where = f"first: task {group.example.task_id}, attempt {group.example.attempt_number}"
            self._say(f"  {where}", "dim", hanging=4)
            self._quote(group.example.message)
            for log in group.example.logs:
                self._say(f"  {log.file}", "dim", hanging=4)
                self._quote(log.text)

    def _evidence(self, evidence: Iterable[Evidence]) -> None:
        for fact in evidence:
            self._say(f"  {fact.source}{_at(fact.at)}:", "dim", hanging=4)
            self._quote(fact.text)

    def _quote(self, text: str) -> None:
        """The last lines: what counts stands at the end of a traceback and of a log."""
        lines = text.splitlines()
        for line in [*["..."][: len(lines) > _QUOTED_LINES], *lines[-_QUOTED_LINES:]]:
            self._say(f"    | {line}", hanging=6)

    def _say(self, line: str, style: str = "", *, hanging: int = 0) -> None:
        """Wrapped at the width of the screen; the lines after the first are moved in."""
        for text in harmless(line).expandtabs(_TAB).split("\n"):
            first, *rest = Text(text).wrap(self._console, self._console.width) or [Text("")]
            shown = [first.plain]
            if rest:
                width = max(_LEAST_WIDTH, self._console.width - hanging)
                left = Text(text[len(first.plain) :].lstrip()).wrap(self._console, width)
                shown += [" " * hanging + more.plain for more in left]
            for part in shown:
                self._console.print(Text(part.rstrip(), style or "default"), soft_wrap=True)


def default_console() -> Console:
    """As wide as the terminal; where there is none, as wide as people read."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def _others(report: Report) -> tuple[Cause, ...]:
    return report.causes[1:] if report.root_cause else report.causes


def _alone(report: Report) -> str:
    is_waiting = report.session == NO_SESSION and report.outcome is Outcome.RUNNING
    return "why it has not started" if is_waiting else "hidden by retries, or asked for"


def _cause_line(cause: Cause) -> str:
    asked_for = ", asked for" if cause.is_intended else ""
    return f"{cause.title} ({cause.confidence.value}{_at(cause.at)}{how_often(cause)}{asked_for})"


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(line: str) -> str:
    """Without codes that a session's logs would give to the terminal."""
    return _CONTROL.sub("", without_ansi(line))


def _at(time: datetime | None) -> str:
    return f", {_time(time)}" if time else ""


def _time(time: datetime | None) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if time else "unknown"
