"""The pieces that pages are made of: tables, facts, badges, times, pagers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.report.model import Outcome
from raykeeper.history.store.session_state import DOUBTFUL, State
from raykeeper.history.text import ago_in_words, length_in_words

Tone = Literal["good", "bad", "warn", "busy", "quiet"]
_STATES: dict[State, Tone] = {State.RUNNING: "busy", State.ENDED: "quiet", State.CRASHED: "bad", State.UNKNOWN: "quiet"}
_STATUSES: dict[str, Tone] = {"SUCCEEDED": "good", "FAILED": "bad", "STOPPED": "warn", "RUNNING": "busy"}

_BAR, _LEAST_BAR = 120, 3


def table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    name: str = "",
    hides_caption: bool = False,
    numbers: Collection[str] = (),
) -> Html:
    """Rows under headers; the first cell of a row is its heading. With a `name`, people may narrow it as they type.

    Columns under the headers in `numbers` are lined up at their right.
    """
    kinds = ["number" if header in numbers else None for header in headers]
    titles = zip(headers, kinds, strict=True)
    head = tag("thead", tag("tr", *(tag("th", header, scope="col", class_=kind) for header, kind in titles)))
    body = tag("tbody", *(_table_row(row, kinds) for row in rows))
    shown = tag("caption", caption, class_="unseen" if hides_caption else None)
    whole = tag("table", shown, head, body, id=name or None)
    # Wide tables scroll inside their own box, which a keyboard must be able to reach.
    box = tag("div", whole, class_="wide", role="region", aria_label=caption, tabindex="0")
    return join([_narrowing(name, caption), box]) if name else box


def _table_row(cells: Sequence[str], kinds: Sequence[str | None]) -> Html:
    first, *others = cells
    values = zip(others, kinds[1:], strict=True)
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell, class_=kind) for cell, kind in values))


def _narrowing(name: str, caption: str) -> Html:
    """Hidden until the script shows it: without one it would do nothing."""
    box = tag("input", type="search", data_narrows=name, aria_label=f"Filter: {caption}", placeholder="Filter table")
    told = tag("span", role="status", class_="quiet")
    return tag("p", box, " ", told, hidden=True, class_="narrowing")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names with their values; what has no value is left out."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value))


def badge(words: str, tone: Tone = "quiet") -> Html:
    return tag("span", words, class_=f"badge {tone}")


def state_badge(state: State, *, is_doubtful: bool = False) -> Html:
    """Whether a session runs, ended or crashed."""
    return badge(DOUBTFUL, "bad") if is_doubtful else badge(state.value, _STATES[state])


def status_badge(status: str) -> Html:
    """A job's status in Ray's words."""
    return badge(status.lower(), _STATUSES.get(status, "quiet"))


_OUTCOMES: dict[str, tuple[str, Tone]] = {
    Outcome.OK: ("Succeeded", "good"),
    Outcome.FAILED: ("Failed", "bad"),
    Outcome.WITH_FAILURES: ("With failures", "warn"),
    Outcome.STOPPED: ("Stopped", "quiet"),
    Outcome.RUNNING: ("Running", "busy"),
    Outcome.FAILING: ("Running, failing", "warn"),
}


def outcome_badge(outcome: str, *, is_doubtful: bool = False) -> Html:
    """How a job or a session went."""
    if is_doubtful:
        return badge(DOUBTFUL, "bad")
    words, tone = _OUTCOMES.get(outcome, ("Not read yet", "quiet"))
    return badge(words, tone)


def task_bar(tasks: Mapping[str, int]) -> Html:
    """How many attempts there are, and what became of them: done, failed, at work, waiting. Failed ones always show."""
    total = sum(tasks.values())
    if not total:
        return EMPTY
    failed, done, running = (tasks.get(state, 0) for state in ("FAILED", "FINISHED", "RUNNING"))
    said = f"{total:,}{f' · {failed:,} failed' if failed else ''}"
    parts: tuple[tuple[Tone, int], ...] = (
        ("bad", failed),
        ("busy", running),
        ("good", done),
        ("quiet", total - failed - done - running),
    )
    widths = [max(_LEAST_BAR, _BAR * number / total) if number else 0 for _, number in parts]
    scale, left, bars = _BAR / sum(widths), 0.0, list[Html]()
    for (tone, number), width in zip(parts, widths, strict=True):
        if number:
            bars.append(tag("rect", x=f"{left:.1f}", y="0", width=f"{width * scale:.1f}", height="8", class_=tone))
        left += width * scale
    label = f"{total:,} attempts, {failed:,} failed"
    picture = tag(
        "svg", *bars, class_="bar", viewBox=f"0 0 {_BAR} 8", preserveAspectRatio="none", role="img", aria_label=label
    )
    return join([picture, quiet(said)])


def next_steps(words: str, steps: Iterable[tuple[str, str]]) -> Html:
    """In the place of an empty list: what would be here, and the commands that bring it."""
    shown = tag("dl", *(tag("div", tag("dt", what), tag("dd", tag("code", command))) for what, command in steps))
    return tag("div", tag("p", words), shown, class_="nothing")


def moment(time: datetime | None) -> Html:
    """A time in UTC; the script tells it in the zone of whoever reads."""
    if time is None:
        return EMPTY
    utc = time.astimezone(UTC)
    return tag("time", f"{utc:%Y-%m-%d %H:%M:%S} UTC", datetime=utc.isoformat())


def ago(time: datetime | None, now: datetime) -> Html:
    """How long ago it was, with the time itself as its title."""
    if time is None:
        return EMPTY
    utc = time.astimezone(UTC)
    title = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return tag("time", ago_in_words(now - utc), datetime=utc.isoformat(), title=title, data_ago=True)


def duration(length: timedelta | None) -> str:
    """How long something took; empty where nobody knows."""
    return "" if length is None else length_in_words(length)


def link(words: str, href: str) -> Html:
    return tag("a", words, href=href)


def copy_button(words: str, href: str = "") -> Html:
    """Copies an address, or that of the page; hidden where no script runs."""
    return tag("button", words, type="button", data_copies=href, hidden=True)


def quiet(words: str) -> Html:
    """Said beside what matters."""
    return tag("span", words, class_="quiet")


def note(words: str, tone: Tone = "warn") -> Html:
    """Something to know before reading on."""
    return tag("p", words, class_=f"note {tone}", role="note")


def nothing(words: str) -> Html:
    """In the place of a table without rows: what would be here, and when."""
    return tag("p", words, class_="nothing")


def pager(*, first: str | None, following: str | None, words: tuple[str, str] = ("Newest", "Older")) -> Html:
    """Links to the first and to the next page; nothing where there is only one."""
    to_first = tag("a", words[0], href=first) if first else EMPTY
    to_next = tag("a", words[1], href=following, rel="next") if following else EMPTY
    links = [one for one in (to_first, to_next) if one]
    return tag("nav", *links, aria_label="Pages", class_="pager") if links else EMPTY
