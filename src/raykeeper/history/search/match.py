"""Which lines of a text hold what is looked for.

Texts are searched whole, before they are cut into lines: most hold nothing. Patterns are matched by RE2, which DuckDB
brings along: its time grows with the text alone, whatever somebody writes into a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import duckdb

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.search.model import SearchRequest

LINE_BYTES = 256 * 1024
"""A longer line is searched, and shown, in pieces of this size."""
_OF_WHOLE_TEXT = re.compile(r"\\[Az]|\(\?[A-Za-z]*-")
"""Anchors at the ends of a text, and flags that make anchors such: they mean another thing in a text of many lines."""
_PATTERN_MEMORY = "256MB"

_HOLDS = "SELECT regexp_matches($text, $pattern)"
_LINES = """
    SELECT number - 1 FROM (
        SELECT unnest(lines) AS line, generate_subscripts(lines, 1) AS number
        FROM (SELECT string_split($text, chr(10)) AS lines)
    ) WHERE regexp_matches(line, $pattern) ORDER BY number
"""

Span = tuple[int, int]
"""Begin and end of a line in its text, without its end of line."""


class Matcher(Protocol):
    """Finds lines. May be used by several threads at once."""

    pattern: str
    """The value for `$pattern` in `condition`."""

    def find(self, text: bytes) -> list[Span]:
        """Every line of the text that is a hit, in order."""
        ...

    def first_in(self, line: str) -> int | None:
        """Where the hit is in a line that is one, as far as that is known; None for one that is none."""
        ...

    def condition(self, column: str) -> str:
        """In SQL: a text that may have a line that is a hit. Never false for one that has."""
        ...


def make_matcher(wanted: SearchRequest) -> Matcher:
    """Raises InvalidQuery for what no line can hold, and for what is no pattern."""
    if not wanted.words or "\n" in wanted.words:
        raise InvalidQuery("lines are looked for, so there must be words, and all on one line")
    return PatternMatcher(wanted.words, wanted.ignores_case) if wanted.is_regex else _plain(wanted)


def _plain(wanted: SearchRequest) -> Matcher:
    return AnyCaseMatcher(wanted.words) if wanted.ignores_case else PlainMatcher(wanted.words)


class PlainMatcher:
    """Words as they are written."""

    def __init__(self, words: str) -> None:
        self.pattern = words
        self._needle = words.encode(errors="replace")

    def find(self, text: bytes) -> list[Span]:
        return list(_pieces(text, _lines_around(text, text, self._needle), self._needle))

    def first_in(self, line: str) -> int | None:
        return _place(line.find(self.pattern))

    def condition(self, column: str) -> str:
        return f"contains({column}, $pattern)"


class AnyCaseMatcher:
    """Words in whatever case."""

    def __init__(self, words: str) -> None:
        self.pattern = words.lower()
        # Letters beyond ASCII have other bytes in the other case, so only the rest is looked for in bytes.
        self._needle = max(_ascii_parts(self.pattern), key=len).encode()

    def find(self, text: bytes) -> list[Span]:
        return list(self.each(text))

    def each(self, text: bytes) -> Iterator[Span]:
        """As `find`, one after the other, for whoever wants a few of very many."""
        lines = _lines_around(text, text.lower(), self._needle) if self._needle else _all_lines(text)
        hits = (span for span in lines if self._holds(text, span))
        return (piece for span in hits for piece in _cut(span) if self._holds(text, piece))

    def first_in(self, line: str) -> int | None:
        return _place(line.lower().find(self.pattern))

    def condition(self, column: str) -> str:
        return f"contains(lower({column}), $pattern)"

    def _holds(self, text: bytes, span: Span) -> bool:
        return self.first_in(text[span[0] : span[1]].decode(errors="replace")) is not None


class PatternMatcher:
    """A regular expression of RE2, matched with one line at a time."""

    def __init__(self, pattern: str, ignores_case: bool) -> None:
        self.pattern = f"(?i){pattern}" if ignores_case else pattern
        self._may_search_whole = _OF_WHOLE_TEXT.search(pattern) is None
        self._database = duckdb.connect(config={"threads": 1, "memory_limit": _PATTERN_MEMORY})
        self._database.execute("SET enable_external_access = false")
        try:
            self._database.execute(_HOLDS, {"text": "", "pattern": pattern})
        except duckdb.InvalidInputException as exc:
            raise InvalidQuery(f"no pattern: {str(exc).partition('Error: ')[2] or exc}") from exc

    def find(self, text: bytes) -> list[Span]:
        decoded = text.decode(errors="replace")
        if self._may_search_whole and not self._holds(decoded, f"(?m){self.pattern}"):
            return []
        numbers = {number for (number,) in self._ask(_LINES, decoded, self.pattern)}
        spans = [span for number, span in enumerate(_all_lines(text)) if number in numbers]
        return [piece for span in spans for piece in self._matching_pieces(text, span)]

    def first_in(self, line: str) -> int | None:
        return 0 if self._holds(line, self.pattern) else None

    def condition(self, column: str) -> str:
        return f"regexp_matches({column}, '(?m)' || $pattern)" if self._may_search_whole else "$pattern <> ''"

    def _matching_pieces(self, text: bytes, span: Span) -> Iterable[Span]:
        pieces = list(_cut(span))
        return pieces if len(pieces) == 1 else [one for one in pieces if self._holds(_decoded(text, one), self.pattern)]

    def _holds(self, text: str, pattern: str) -> bool:
        return bool(self._ask(_HOLDS, text, pattern)[0][0])

    def _ask(self, sql: str, text: str, pattern: str) -> list[tuple[object, ...]]:
        with self._database.cursor() as cursor:
            return cursor.execute(sql, {"text": text, "pattern": pattern}).fetchall()


def _lines_around(text: bytes, searched: bytes, needle: bytes) -> Iterator[Span]:
    """The lines of the text where the needle is in what is searched, each once."""
    at = searched.find(needle)
    while at >= 0:
        begin = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        yield begin, end
        at = searched.find(needle, end)


def _all_lines(text: bytes) -> Iterator[Span]:
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        yield begin, end
        begin = end + 1


def _pieces(text: bytes, spans: Iterable[Span], needle: bytes) -> Iterator[Span]:
    for span in spans:
        if span[1] - span[0] <= LINE_BYTES:
            yield span
        else:
            yield from (piece for piece in _cut(span) if text.find(needle, *piece) >= 0)


def _cut(span: Span) -> Iterator[Span]:
    """A line that is too long, in pieces; any other as it is."""
    begin, end = span
    for start in range(begin, max(end, begin + 1), LINE_BYTES):
        yield start, min(start + LINE_BYTES, end)


def _decoded(text: bytes, span: Span) -> str:
    return text[span[0] : span[1]].decode(errors="replace")


def _ascii_parts(words: str) -> list[str]:
    return "".join(letter if letter.isascii() else "\n" for letter in words).split("\n")


def _place(found: int) -> int | None:
    return found if found >= 0 else None
