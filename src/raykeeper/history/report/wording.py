"""Long texts for one line. Pure."""

from __future__ import annotations

LINE_CHARS = 240
_MORE = " ..."


def shortened(text: str) -> str:
    """The text, or its beginning up to a word, with a sign that there was more."""
    if len(text) <= LINE_CHARS:
        return text
    kept = text[: LINE_CHARS - len(_MORE)]
    return (kept.rpartition(" ")[0] or kept) + _MORE
