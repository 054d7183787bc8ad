"""Lines of a text that hold some words, with the lines around them. Pure; memory for a few lines, whatever the text."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from raykeeper.history.secretpatterns import masked_text

CONTEXT_LINES = 2
LINE_CHARS = 600
"""Of one line; the rest of a longer one is left out."""


@dataclass(frozen=True)
class LogLine:
    number: int | None
    """From 1; None where only the end of the file was read."""
    text: str
    is_hit: bool = False


@dataclass(frozen=True)
class Passage:
    """Lines that follow each other."""

    lines: tuple[LogLine, ...]


class LineSearch:
    """Takes a text line by line and keeps the passages around hits.

    What is kept is masked, and a hit counts only if the masked line is one: nobody may guess at a secret by searching.
    """

    def __init__(self, words: str, limit: int) -> None:
        self._words = words.casefold()
        self._limit = limit
        self._before: deque[tuple[int, str]] = deque(maxlen=CONTEXT_LINES)
        self._passages: list[list[LogLine]] = []
        self._after = 0
        self.hits = 0
        """All of them, also those beyond the limit."""

    def take(self, number: int, line: str) -> None:
        is_hit = self._words in line.casefold() and self._words in masked_text(line).casefold()
        self.hits += is_hit
        if is_hit and self.hits <= self._limit:
            self._keep_hit(number, line)
        elif self._after:
            self._after -= 1
            self._passages[-1].append(_shown(number, line))
        else:
            self._before.append((number, line))

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(Passage(tuple(lines)) for lines in self._passages)

    def _keep_hit(self, number: int, line: str) -> None:
        first = self._before[0][0] if self._before else number
        if not self._passages or self._passages[-1][-1].number != first - 1:
            self._passages.append([])
        self._passages[-1] += [_shown(*before) for before in self._before]
        self._passages[-1].append(_shown(number, line, is_hit=True))
        self._before.clear()
        self._after = CONTEXT_LINES


def _shown(number: int, line: str, *, is_hit: bool = False) -> LogLine:
    return LogLine(number, masked_text(line)[:LINE_CHARS], is_hit)
