"""What nodes used over time as small charts, and the hours and the cost that makes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from raykeeper.history.curves.model import Curve, Curves, Numbers
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.timeline_svg import Scale, axis
from raykeeper.history.http.pages.widgets import note, nothing, quiet, table
from raykeeper.history.overview.resources import hours_in_words
from raykeeper.history.overview.usage import Usage, UsageHours
from raykeeper.history.text import counted

POINTS = 120
"""Of one chart, which is some hundred pixels wide."""
_WIDTH, _HEIGHT = 1000, 100
_TITLES = {
    "cpu": "CPU",
    "memory": "Memory",
    "gpu": "GPU",
    "gpu_memory": "GPU memory",
    "object_store": "Object store",
    "disk": "Disk",
    "network_received": "Network received",
    "network_sent": "Network sent",
}
_HOURS_HEADERS = ("Resource", "Available", "Reserved", "Requested", "Used")


def curves_section(curves: Curves) -> Html:
    """One chart for each resource; what was used at most is behind what was used on average."""
    notes = [note(words) for words in curves.notes]
    if not curves.curves:
        return join([tag("h2", "Over time"), *notes, nothing("No measurements of the machines were recorded.")])
    scale = Scale(curves.begin, curves.end)
    charts = [_figure(curve, scale) for curve in curves.curves]
    return join([tag("h2", "Over time"), *notes, tag("div", *charts, class_="curves")])


def _figure(curve: Curve, scale: Scale) -> Html:
    title = _TITLES.get(curve.name, curve.name)
    peak, total = _most(curve.max), _most(curve.total or ())
    known = [value for value in curve.mean if value is not None]
    mean = sum(known) / len(known) if known else 0.0
    had = f" of {_amount(total, curve.unit)}" if total else ""
    gaps = "; not measured where nothing is drawn" if len(known) < len(curve.mean) else ""
    told = f"mean {_amount(mean, curve.unit)}, peak {_amount(peak, curve.unit)}{had}{gaps}"
    top = max(peak, total) or 1.0
    shapes = (*_areas(curve.max, top, "quiet"), *_areas(curve.mean, top, "busy"))
    drawn = tag(
        "svg",
        *shapes,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        class_="chart",
        role="img",
        aria_label=f"{title}: {told}",
    )
    return tag("figure", tag("figcaption", tag("strong", title), " ", quiet(told)), drawn, axis(scale))


def _areas(values: Numbers, top: float, tone: str) -> Iterator[Html]:
    """Steps, because each value holds for a part of the time. What nobody measured is a gap, which is not no use."""
    width = _WIDTH / max(1, len(values))
    for is_known, group in groupby(enumerate(values), key=lambda part: part[1] is not None):
        if not is_known:
            continue
        parts = [(place, value or 0.0) for place, value in group]
        begin, end = parts[0][0] * width, (parts[-1][0] + 1) * width
        steps = [f"{begin:.4g},{_HEIGHT}"]
        for place, value in parts:
            height = f"{_HEIGHT * (1 - min(1.0, value / top)):.4g}"
            steps += [f"{place * width:.4g},{height}", f"{(place + 1) * width:.4g},{height}"]
        yield tag("polygon", points=" ".join([*steps, f"{end:.4g},{_HEIGHT}"]), class_=tone)


def _most(values: Iterable[float | None]) -> float:
    return max((value for value in values if value is not None), default=0.0)


def _amount(value: float, unit: str) -> str:
    if not unit.startswith("bytes"):
        return f"{value:.3g} {unit}"
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {name}{unit[5:]}"
    return f"{value:.0f} B{unit[5:]}"


def usage_section(usage: Usage) -> Html:
    """Hours by resource, and what they cost by the price list."""
    heading = tag("h2", "Resource-hours")
    if not usage.hours:
        return join([heading, nothing("No node and no task said what resources it has or needs.")])
    rows = [_hours_row(row) for row in usage.hours]
    shown = table("Resource-hours", _HOURS_HEADERS, rows, hides_caption=True, numbers=_HOURS_HEADERS[1:])
    return join([heading, shown, _cost(usage), *(tag("p", quiet(words)) for words in usage.notes)])


def _hours_row(row: UsageHours) -> tuple[str, ...]:
    name = f"{row.name.replace('_', ' ')} GiB" if row.name.endswith("memory") else row.name
    figures = (row.available, row.reserved, row.asked, row.used)
    return (name, *("" if value is None else hours_in_words(value) for value in figures))


def _cost(usage: Usage) -> Html:
    cost = usage.cost
    if cost is None:
        return EMPTY
    used = "" if cost.used is None else f", of which {cost.used:,.2f} was used"
    left = f"; {counted(cost.unpriced_nodes, 'node')} without a price" if cost.unpriced_nodes else ""
    return tag("p", tag("strong", f"{cost.available:,.2f} {cost.currency}"), f" by the price list{used}{left}.")
