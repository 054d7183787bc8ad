"""Small rules for texts that people read: no ANSI codes, counted nouns, shortened lines. Pure."""

from __future__ import annotations

import re

_CODE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def without_ansi(text: str) -> str:
    return _CODE.sub("", text)


def counted(number: int, noun: str) -> str:
    """`1 node`, `2,000 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LINE_CHARS = 240
_MORE = " ..."


def shortened(text: str) -> str:
    """The text, or its beginning up to a word, with a sign that there was more."""
    if len(text) <= LINE_CHARS:
        return text
    kept = text[: LINE_CHARS - len(_MORE)]
    return (kept.rpartition(" ")[0] or kept) + _MORE


_CUT_LINE = "...\n"


def end_of(text: str, chars: int) -> str:
    """The last whole lines within so many characters, below a sign that there was more; of a longer line, its end."""
    if len(text) <= chars:
        return text
    kept = text[-chars:]
    return _CUT_LINE + (kept if text[-chars - 1] == "\n" else kept.partition("\n")[2] or kept)
