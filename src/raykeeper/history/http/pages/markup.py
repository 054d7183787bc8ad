"""HTML that cannot be forgotten to escape, nor to mask: text becomes HTML through `tag` alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from raykeeper.masking import masked_text

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag. SVG has none: a shape that is not closed would swallow those behind it."""
_TOLD = frozenset({"title", "aria-label", "alt"})
"""Attributes that are read by people. Others are addresses, which must lead somewhere, and what somebody typed in."""


class Html(str):
    """HTML already. Any other `str` is text: it is masked and escaped wherever it is put into a page."""

    __slots__ = ()


EMPTY = Html("")


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Html:
    """One element. An attribute that is None or False is left out, True stands alone.

    Python's own words end in an underscore (`class_`), and underscores between words are dashes (`aria_label`).
    """
    opened = f"<{name}{''.join(_attribute(*item) for item in attributes.items())}>"
    return Html(opened if name in _VOID else f"{opened}{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """One after the other; what is text is escaped."""
    return Html(_html_of(between).join(_html_of(part) for part in parts))


def _html_of(part: str) -> Html:
    return part if isinstance(part, Html) else Html(escape(masked_text(part)))


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    spelled = name.rstrip("_").replace("_", "-")
    text = masked_text(str(value)) if spelled in _TOLD else str(value)
    return f" {spelled}" if value is True else f' {spelled}="{escape(text)}"'
