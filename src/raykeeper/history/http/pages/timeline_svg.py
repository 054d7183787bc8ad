"""Timelines and charts as SVG that stretches with the page: words stand beside it, as HTML, and never shrink. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from raykeeper.history.http.pages.markup import EMPTY, Html, tag
from raykeeper.history.http.pages.widgets import Tone, duration, moment, quiet
from raykeeper.history.overview.model import Lane, Mark, Span

_WIDTH, _STRIP_HEIGHT, _CHART_HEIGHT = 1000, 24, 100
_LEAST_WIDTH = 3.0  # what lasted a moment must be seen too
_MARK_WIDTH = 5.0
_LINES = 4  # quarters, as the style sheet draws them
_TRACKS = 6  # spans at the same time that a strip tells apart
_TONES: dict[str, Tone] = {
    "running": "busy",
    "alive": "quiet",
    "failed": "bad",
    "lost": "bad",
    "warning": "warn",
    "normal": "good",
}


@dataclass(frozen=True)
class Scale:
    """From times to places."""

    begin: datetime
    end: datetime

    def place(self, time: datetime) -> float:
        """Between 0 and the width; what lies outside is at the edge."""
        whole = (self.end - self.begin).total_seconds() or 1.0
        return round(min(1.0, max(0.0, (time - self.begin).total_seconds() / whole)) * _WIDTH, 1)


@dataclass(frozen=True)
class Series:
    """One of the layers of a chart."""

    label: str
    tone: Tone
    values: Sequence[float]


def lanes(rows: Iterable[Lane], scale: Scale) -> Html:
    """Lanes below each other, each with its name and what it shows in words."""
    items = [tag("li", tag("span", row.label, " ", quiet(row.note), class_="label"), strip(row, scale)) for row in rows]
    return tag("ul", *items, class_="lanes") if items else EMPTY


def strip(lane: Lane, scale: Scale) -> Html:
    """One lane: how many ran, or what lasted; over it what happened at a moment."""
    shapes = [_area(lane.levels, max(lane.levels)) if lane.levels else EMPTY, *_spans(lane.spans, scale)]
    return _svg("strip", _STRIP_HEIGHT, f"{lane.label}: {lane.note}", [*shapes, *_marks(lane.marks, scale)])


def chart(title: str, layers: Sequence[Series], scale: Scale, unit: str) -> Html:
    """Layers on top of each other, with their names and the highest sum."""
    sums = [sum(values) for values in zip(*(layer.values for layer in layers), strict=True)]
    most = max(sums, default=0.0)
    told = f"{title}: at most {_number(most)} {unit}"
    shapes, below = [], [0.0] * len(sums)
    for layer in layers:
        above = [low + value for low, value in zip(below, layer.values, strict=True)]
        shapes.append(_band(below, above, most, layer.tone))
        below = above
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), " ", quiet(f"at most {_number(most)} {unit}"), _key(layers)),
        _svg("chart", _CHART_HEIGHT, told, shapes),
        axis(scale),
    )


def axis(scale: Scale, *, is_beside: bool = False) -> Html:
    """The times at both ends and, at the lines through the strips, how long after the beginning that is."""
    whole = scale.end - scale.begin
    passed = (tag("span", f"+ {duration(whole * part / _LINES)}") for part in range(1, _LINES // 2 + 1))
    labels = (moment(scale.begin), *passed, moment(scale.end))
    return tag("div", *labels, class_="axis beside" if is_beside else "axis")


def tracks_of(spans: Sequence[Span]) -> list[int]:
    """For each span the first track that is free when it begins; what finds none shares the last."""
    free_at: list[datetime] = []
    tracks = []
    for span in spans:
        track = next((place for place, at in enumerate(free_at) if at <= span.begin), len(free_at))
        if track == len(free_at) and track < _TRACKS:
            free_at.append(span.end)
        track = min(track, _TRACKS - 1)
        free_at[track] = max(free_at[track], span.end)
        tracks.append(track)
    return tracks


def _svg(kind: str, height: int, told: str, shapes: Iterable[str]) -> Html:
    return tag(
        "svg",
        *shapes,
        viewBox=f"0 0 {_WIDTH} {height}",
        preserveAspectRatio="none",
        class_=kind,
        role="img",
        aria_label=told,
    )


def _spans(spans: Sequence[Span], scale: Scale) -> list[Html]:
    tracks = tracks_of(spans)
    height = _STRIP_HEIGHT / (max(tracks, default=0) + 1)
    return [
        _box(scale.place(span.begin), scale.place(span.end), track * height, height, span.kind, span.title)
        for span, track in zip(spans, tracks, strict=True)
    ]


def _box(left: float, right: float, top: float, height: float, kind: str, title: str) -> Html:
    right = max(right, left + _LEAST_WIDTH)
    low, high = round(top + 1, 1), round(top + height - 1, 1)
    points = f"{left},{low} {right:.1f},{low} {right:.1f},{high} {left},{high}"
    return tag("polygon", tag("title", title), points=points, class_=_TONES.get(kind, "quiet"))


def _marks(marks: Iterable[Mark], scale: Scale) -> list[Html]:
    """A tick through the whole strip: it must be found on top of whatever ran."""
    half = _MARK_WIDTH / 2
    return [
        _box(
            max(0.0, scale.place(mark.at) - half), scale.place(mark.at) + half, 0, _STRIP_HEIGHT, mark.kind, mark.title
        )
        for mark in marks
    ]


def _area(levels: Sequence[float], most: float) -> Html:
    return _band([0.0] * len(levels), levels, most, "busy", _STRIP_HEIGHT)


def _band(below: Sequence[float], above: Sequence[float], most: float, tone: Tone, height: int = _CHART_HEIGHT) -> Html:
    """Steps, because each value holds for a whole part of the time."""
    if most <= 0:
        return EMPTY
    outline = [*_steps(above, most, height), *reversed(list(_steps(below, most, height)))]
    return tag("polygon", points=" ".join(outline), class_=tone)


def _steps(values: Sequence[float], most: float, height: int) -> Iterable[str]:
    width = _WIDTH / max(1, len(values))
    for part, value in enumerate(values):
        top = f"{height * (1 - value / most):.4g}"
        yield f"{part * width:.4g},{top}"
        yield f"{(part + 1) * width:.4g},{top}"


def _key(layers: Sequence[Series]) -> Html:
    names = [tag("li", tag("span", class_=f"swatch {layer.tone}"), layer.label) for layer in layers]
    return tag("ul", *names, class_="key")


def _number(value: float) -> str:
    """Whole, as tasks and nodes are; what is shown may be a mean over a part of the time."""
    return f"{ceil(value):,}"
