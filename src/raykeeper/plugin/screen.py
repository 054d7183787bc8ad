"""A diagnosis or a report as lines for a terminal. Text from outside can neither colour nor move anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from raykeeper.api.meta import JSON
from raykeeper.client.diagnosis import Diagnosis, EventSeen, Health, PodSeen
from raykeeper.masking import masked_text

Line = tuple[str, str]
"""A text, and how it looks: `bold`, `dim`, `red`, `green`, `yellow` or nothing."""

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "": ""}
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COLOURS = {
    Health.READY: "green",
    Health.RUNNING: "green",
    Health.FINISHED: "green",
    Health.SUSPENDED: "yellow",
    Health.WAITING: "yellow",
    Health.DELETING: "yellow",
    Health.FAILED: "red",
    Health.GONE: "red",
}
_PODS_SHOWN = 20
_TEXT_CHARS = 400
_EXCERPTS, _EXCERPT_LINES, _STEPS, _CAUSES = 2, 12, 8, 5


def harmless(text: str, limit: int = _TEXT_CHARS) -> str:
    """One line without codes for the terminal, without secrets, and not endless."""
    line = _CONTROL.sub(" ", _ANSI.sub("", masked_text(text))).strip()
    return f"{line[:limit]}…" if len(line) > limit else line


def write_lines(lines: Sequence[Line], write: Callable[[str], object], *, has_colours: bool) -> None:
    for text, style in lines:
        code = _CODES[style] if has_colours else ""
        write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")


def diagnosis_lines(seen: Diagnosis, now: datetime) -> list[Line]:
    """One screen of health."""
    return [*_head(seen, now), *_why(seen), *_conditions(seen), *_pods(seen, now), *_events(seen, now), *_unread(seen)]


def _head(seen: Diagnosis, now: datetime) -> Iterator[Line]:
    state = f"  ({harmless(seen.state)})" if seen.state and seen.state != seen.health.value else ""
    old = f", {age(seen.created_at, now)} old" if seen.created_at else ""
    yield f"{seen.subject}: {seen.health.value}{state}{old}", _COLOURS[seen.health]
    if seen.health is Health.GONE:
        yield "There is no such object. If it had a history, `kubectl raykeeper why` finds it there.", "dim"
    width = max((len(name) for name, _ in seen.facts), default=0)
    for name, value in seen.facts:
        yield f"  {name:<{width}}  {harmless(value)}", ""


def _why(seen: Diagnosis) -> Iterator[Line]:
    if seen.headline:
        yield from (("", ""), ("Report", "bold"), (f"  {harmless(seen.headline)}", "red"))
    if seen.waits_for:
        yield "", ""
        yield ("Why it failed" if seen.health is Health.FAILED else "What it waits for"), "bold"
        yield from ((f"  {harmless(reason)}", "") for reason in seen.waits_for)


def _conditions(seen: Diagnosis) -> Iterator[Line]:
    if seen.conditions:
        yield from (("", ""), ("Conditions", "bold"))
    for condition in seen.conditions:
        mark, style = ("!", "yellow") if condition.is_trouble else (" ", "")
        yield f"  {mark} {condition.type:<22} {condition.status:<8} {harmless(condition.words)}", style


def _pods(seen: Diagnosis, now: datetime) -> Iterator[Line]:
    if not seen.pods:
        return
    yield from (("", ""), ("Pods", "bold"))
    # Those that work are the least interesting where not all fit.
    shown = (
        sorted(seen.pods, key=lambda pod: not pod.problems)[:_PODS_SHOWN] if len(seen.pods) > _PODS_SHOWN else seen.pods
    )
    width = max(len(pod.name) for pod in shown)
    for pod in shown:
        yield _pod_line(pod, width, now)
        yield from ((f"      {harmless(problem)}", "yellow") for problem in pod.problems)
    if len(seen.pods) > len(shown):
        yield f"  … and {len(seen.pods) - len(shown)} more", "dim"


def _pod_line(pod: PodSeen, width: int, now: datetime) -> Line:
    state = "ready" if pod.is_ready else pod.phase
    restarts = f", {pod.restarts} restarts" if pod.restarts else ""
    where = f" on {pod.node}" if pod.node else ""
    group = f" {pod.group}" if pod.group and pod.role == "worker" else ""
    is_well = pod.is_ready or pod.phase == "Succeeded"
    text = f"  {pod.name:<{width}}  {pod.role}{group}: {state}{restarts}, {age(pod.created_at, now)}{where}"
    return harmless_keep(text), "" if is_well else "yellow"


def harmless_keep(text: str) -> str:
    """As `harmless`, with the spaces in front."""
    return _CONTROL.sub(" ", _ANSI.sub("", text)).rstrip()


def _events(seen: Diagnosis, now: datetime) -> Iterator[Line]:
    if not seen.events:
        return
    yield from (("", ""), ("Last events", "bold"))
    for event in seen.events:
        yield f"  {_event(event, now)}", "yellow" if event.type == "Warning" else ""


def _event(event: EventSeen, now: datetime) -> str:
    times = f" (x{event.count})" if event.count > 1 else ""
    return harmless(f"{age(event.at, now):>4} ago  {event.about}  {event.reason}: {event.message}{times}")


def _unread(seen: Diagnosis) -> Iterator[Line]:
    if seen.unread:
        yield "", ""
    for missing in seen.unread:
        yield f"Could not be read: {harmless(missing)}", "dim"


def age(since: str, now: datetime) -> str:
    """`42s`, `7m`, `3h`, `5d`."""
    try:
        begun = datetime.fromisoformat(since.replace("Z", "+00:00"))
    except ValueError:
        return "?"
    seconds = max(0, int((now - (begun if begun.tzinfo else begun.replace(tzinfo=UTC))).total_seconds()))
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (size == 86400 and seconds >= size):
            return f"{seconds // size}{letter}"
    return f"{seconds}s"


def report_lines(report: JSON) -> list[Line]:
    """The first screen of a history server's report."""
    return list(_report(report))


def _report(report: JSON) -> Iterator[Line]:
    outcome = str(report.get("outcome", "unknown"))
    names = (report.get("namespace"), report.get("cluster"), report.get("session"), report.get("job"))
    subject = "/".join(str(name) for name in names if name and name != "none")
    yield f"{outcome}: {harmless(subject)}", "green" if outcome in ("ok", "running") else "red"
    headline = report.get("headline")
    if headline:
        yield "", ""
        yield harmless(str(headline.get("text", ""))), "bold"
        where = headline.get("where") or {}
        place = f", at {where['file']}:{where['line']}" if where.get("file") else ""
        yield harmless(f"{headline.get('what', '')}{place}"), ""
        if headline.get("then"):
            yield harmless(str(headline["then"])), ""
        yield harmless(f"[{headline.get('confidence', '')}] {headline.get('basis', '')}"), "dim"
    for excerpt in report.get("excerpts", ())[:_EXCERPTS]:
        yield from (("", ""), (harmless(str(excerpt.get("title", ""))), "dim"))
        yield from _excerpt(excerpt.get("lines", ())[-_EXCERPT_LINES:])
    steps = report.get("steps", ())
    if len(steps) > 1:
        yield from (("", ""), ("step by step", "dim"))
        for number, step in enumerate(steps[:_STEPS], 1):
            yield f"  {number}. {harmless(str(step.get('text', '')))}", ""
    others = report.get("causes", ())[1 if report.get("root_cause") else 0 :]
    others = [cause for cause in others if not cause.get("is_intended")]
    if others:
        yield from (("", ""), ("also", "dim"))
        yield from ((f"  {harmless(str(cause.get('title', '')))}", "") for cause in others[:_CAUSES])
    for unknown in report.get("unknown", ())[:_CAUSES] if not headline else ():
        yield f"not known: {harmless(str(unknown.get('text', '')))}", "dim"


def _excerpt(lines: Sequence[JSON]) -> Iterator[Line]:
    for line in lines:
        number = f"{line['number']:>5} " if line.get("number") else "      "
        is_error = line.get("kind") == "error"
        yield (
            f"{number}{'>' if is_error else ' '} {harmless_keep(masked_text(str(line.get('text', ''))))}",
            ("red" if is_error else ""),
        )
