"""A report as Markdown, to be pasted into a ticket or a chat. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.report.model import Excerpt, Report
from raykeeper.history.report.shape import how_often
from raykeeper.history.report.words import attempts_in_words, shortened_lines, subject, verdict, whose
from raykeeper.history.text import without_ansi

_EXCERPTS_SHOWN, _EXCERPT_LINES, _ALSO_SHOWN = 2, 15, 5
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")
_FENCE = re.compile(r"`{3,}")


def to_markdown(report: Report) -> str:
    """The answer, the lines that matter, and what followed."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"### {_plain(verdict(report))}: {_plain(subject(report))}"
    yield ""
    headline = report.headline
    if headline:
        yield f"**{_plain(headline.text)}**  "
        yield f"{_plain(whose(headline))} *({headline.confidence.value}: {_plain(headline.basis)})*"
        yield ""
        if headline.then:
            yield from (_plain(headline.then), "")
    for excerpt in report.excerpts[:_EXCERPTS_SHOWN]:
        yield from _excerpt(excerpt)
    if len(report.steps) > 1:
        yield from (f"{number}. {_plain(step.text)}" for number, step in enumerate(report.steps, 1))
        yield ""
    others = [cause for cause in report.causes[1 if report.root_cause else 0 :] if not cause.is_intended]
    yield from (f"- also: {_plain(cause.title)}{how_often(cause)}" for cause in others[:_ALSO_SHOWN])
    if others:
        yield ""
    yield _plain(attempts_in_words(report))


def _excerpt(excerpt: Excerpt) -> Iterator[str]:
    yield f"{_plain(excerpt.title)}{f', line {excerpt.address.line}' if excerpt.address.line else ''}:"
    yield "```text"
    yield from (_FENCE.sub("'''", without_ansi(line.text)) for line in shortened_lines(excerpt, _EXCERPT_LINES))
    yield from ("```", "")


def _plain(text: str) -> str:
    """As text: what a session says is no markup."""
    return _SPECIAL.sub(r"\\\1", without_ansi(text)).replace("\n", " ")
