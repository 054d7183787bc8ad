"""Colour codes out of a log, as Ray's `filter_ansi_code` takes them out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

_CODE = re.compile(rb"\x1b\x5b[(\x30-\x39)\x3b]+\x6d")
_UNFINISHED = re.compile(rb"\x1b(?:\x5b[(\x30-\x39)\x3b]{0,30})?\Z")
"""The beginning of a code at the end of a piece; a longer one is no code that anybody writes."""


async def without_codes(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same text without codes, also where one is cut by the end of a piece (Ray itself leaves those in)."""
    held = b""
    async for piece in pieces:
        text = _CODE.sub(b"", held + piece)
        unfinished = _UNFINISHED.search(text)
        held = unfinished.group() if unfinished else b""
        if text := text[: len(text) - len(held)]:
            yield text
    if held:
        yield held
