"""The pieces that pages are made of: tables, facts, badges, times, pagers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.store.session_state import State

Tone = Literal["good", "bad", "warn", "busy", "quiet"]
_STATES: dict[State, Tone] = {State.RUNNING: "busy", State.ENDED: "quiet", State.CRASHED: "bad", State.UNKNOWN: "quiet"}
_STATUSES: dict[str, Tone] = {"SUCCEEDED": "good", "FAILED": "bad", "STOPPED": "warn", "RUNNING": "busy"}
_UNBROKEN = "\u00a0"  # a number stays beside its unit


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
    return badge("running? no heartbeat", "bad") if is_doubtful else badge(state.value, _STATES[state])


def status_badge(status: str) -> Html:
    """A job's status in Ray's words."""
    return badge(status.lower(), _STATUSES.get(status, "quiet"))


def moment(time: datetime | None) -> Html:
    """A time in UTC; the script tells it in the zone of whoever reads."""
    if time is None:
        return EMPTY
    utc = time.astimezone(UTC)
    return tag("time", f"{utc:%Y-%m-%d %H:%M:%S} UTC", datetime=utc.isoformat())


def duration(length: timedelta | None) -> str:
    """How long something took, in the two largest units."""
    if length is None:
        return ""
    seconds = max(0.0, length.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f}{_UNBROKEN}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    first = next((place for place, (number, _) in enumerate(units) if number), len(units) - 1)
    return _UNBROKEN.join(f"{number}{_UNBROKEN}{unit}" for number, unit in units[first : first + 2] if number)


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
