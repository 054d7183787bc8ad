"""The target of a request line: path and query, as Go's HTTP server reads them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qsl, quote, unquote

from aiohttp import web

MOST_PARAMETERS = 1000
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"
_SCHEME = re.compile(r"\Ahttps?://[^/?]*", re.IGNORECASE)


class MalformedTarget(ValueError):
    """No path that could be looked up."""


def parse_query(text: str) -> list[tuple[str, str]]:
    """Names and values of a query or a form; bytes that are no UTF-8 are lone surrogates. Raises ValueError."""
    return parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_PARAMETERS)


@dataclass(frozen=True)
class Target:
    """Where a request goes."""

    raw_path: str
    """Percent-encoded, as it was sent."""
    path: str
    """Decoded; bytes that are no UTF-8 are lone surrogates."""
    raw_query: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Of the second word of a request line. Raises `MalformedTarget`."""
        text = _SCHEME.sub("", text, count=1) or "/"
        raw_path, _, raw_query = text.partition("#")[0].partition("?")
        if not raw_path.startswith("/") or _MALFORMED.search(raw_path):
            raise MalformedTarget(raw_path)
        return cls(raw_path, unquote(raw_path, errors="surrogateescape"), raw_query)

    @property
    def query(self) -> Sequence[tuple[str, str]]:
        """Names and values. Raises ValueError for more than `MOST_PARAMETERS`."""
        return parse_query(self.raw_query)

    @property
    def segments(self) -> list[str]:
        return self.path.split("/")[1:]

    @property
    def clean_path(self) -> str:
        """The path without empty, `.` and `..` segments, as Go's multiplexer redirects to it."""
        cleaned = posixpath.normpath("/" + self.path.lstrip("/"))
        return f"{cleaned}/" if self.path.endswith(("/", "/.", "/..")) and cleaned != "/" else cleaned


def redirect(path: str, raw_query: str) -> web.Response:
    """To the same thing under its proper path, with the same method: 307, as Go's multiplexer answers."""
    place = quote(path, safe=_PATH_CHARACTERS, errors="surrogateescape") + (f"?{raw_query}" if raw_query else "")
    text = f'<a href="{escape(place)}">Temporary Redirect</a>.\n\n'
    return web.Response(status=307, text=text, content_type="text/html", headers={"Location": place})
