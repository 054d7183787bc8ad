"""Forms that narrow a list. Their fields are the parameters of the page itself, so every view has an address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from urllib.parse import urlencode

import msgspec

from raykeeper.history.http.keeper_api.operation import Q, parse_query
from raykeeper.history.http.pages.markup import EMPTY, Html, tag

Given = Mapping[str, str]
"""The parameters of a page's address, as they came."""


def given_parameters(pairs: Iterable[tuple[str, str]], kind: type[Q]) -> dict[str, str]:
    """Those that the page knows and that say something: a form sends its empty fields too."""
    known = {field.name for field in msgspec.structs.fields(kind)}
    return {name: text.strip() for name, text in pairs if name in known and text.strip()}


def page_query(given: Given, kind: type[Q]) -> Q:
    """The query that a page's address makes; a day stands for its first moment, or as an end for its last.

    Raises InvalidQuery.
    """
    return parse_query(((name, _moment(name, text)) for name, text in given.items()), kind)


def _moment(name: str, text: str) -> str:
    if name not in ("since", "until"):
        return text
    try:
        day = date.fromisoformat(text)
        return f"{day + timedelta(days=1) if name == 'until' else day}T00:00:00Z"
    except (ValueError, OverflowError):  # no day, or the last one of the calendar
        return text


def link_with(path: str, given: Given, **changed: str) -> str:
    """The page's own address with some parameters changed; an empty one is left out."""
    wanted = {name: text for name, text in {**given, **changed}.items() if text}
    return f"{path}?{urlencode(wanted)}" if wanted else path


def text_field(
    words: str, name: str, given: Given, kind: str = "text", *, placeholder: str = "", options: Sequence[str] = ()
) -> Html:
    """A text, or one of the `options`, which are offered and not the only ones."""
    known = f"{name}-options" if options else None
    box = tag(
        "input",
        type=kind,
        name=name,
        value=given.get(name, ""),
        autocomplete="off",
        placeholder=placeholder or None,
        list=known,
    )
    offered = tag("datalist", *(tag("option", value=option) for option in options), id=known) if known else EMPTY
    return tag("label", words, box, offered)


def chips(label: str, path: str, given: Given, name: str, options: Mapping[str, str]) -> Html:
    """Links that choose one of a few values of a parameter; the first is the one that is meant without any."""
    chosen = given.get(name, "")
    items = (
        tag("a", words, href=link_with(path, given, **{name: value, "after": ""}), aria_current=_current(value, chosen))
        for value, words in options.items()
    )
    return tag("nav", tag("ul", *(tag("li", item) for item in items)), aria_label=label, class_="chips")


def _current(value: str, chosen: str) -> str | None:
    return "true" if value == chosen else None


def choice(words: str, name: str, given: Given, options: Mapping[str, str]) -> Html:
    """One of several values; the first is the one that is meant without any."""
    chosen = given.get(name, next(iter(options)))
    items = (tag("option", shown, value=value, selected=value == chosen) for value, shown in options.items())
    return tag("label", words, tag("select", *items, name=name))


def filter_form(path: str, label: str, fields: Iterable[Html], given: Given, keeps: Sequence[str] = ()) -> Html:
    """A form of these fields, with a way back to everything where something is asked for.

    `keeps` are parameters that are chosen elsewhere on the page.
    """
    everything = tag("a", "Show all", href=path) if set(given) - {"after"} else EMPTY
    kept = (tag("input", type="hidden", name=name, value=given[name]) for name in keeps if name in given)
    button = tag("button", "Apply", type="submit")
    return tag(
        "form", *fields, *kept, button, everything, action=path, method="get", class_="filters", aria_label=label
    )
