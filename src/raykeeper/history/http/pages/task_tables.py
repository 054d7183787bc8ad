"""What the pages of sessions and of jobs share: charts of tasks, tables of functions and of resources. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from raykeeper.history.http.pages.markup import Html, join, tag
from raykeeper.history.http.pages.timeline_svg import Scale, Series, chart
from raykeeper.history.http.pages.widgets import nothing, quiet, table
from raykeeper.history.overview.model import FunctionRow, Functions, ResourceHours, Resources, TaskCounts, TaskSeries
from raykeeper.history.overview.resources import hours_in_words
from raykeeper.history.text import counted

_FUNCTION_HEADERS = ("Function", "Attempts", "Failed", "p50", "p95", "Total")
_RESOURCE_HEADERS = ("Resource", "Requested", "Available", "Used")
NO_TASKS = "No tasks are recorded. While a cluster runs, they appear within seconds."


def tasks_section(counts: TaskCounts, series: TaskSeries) -> Html:
    """How many tasks waited and ran, and how many ended, over the time."""
    heading = tag("h2", "Tasks over time")
    if not counts.attempts:
        return join([heading, nothing(NO_TASKS)])
    scale = Scale(series.begin, series.begin + timedelta(seconds=series.width_seconds * len(series.running)))
    at_work = (Series("running", "busy", series.running), Series("waiting", "quiet", series.pending))
    ended = (Series("failed", "bad", series.failed), Series("finished", "good", series.finished))
    width = f"ended within {in_words(series.width_seconds)}"
    return join(
        [
            heading,
            tag("p", _counts_in_words(counts)),
            chart("Running and waiting", at_work, scale, "at a time"),
            chart("Ended", ended, scale, width),
        ]
    )


def _counts_in_words(counts: TaskCounts) -> str:
    open_ones = [(counts.running, "running"), (counts.pending, "waiting")]
    others = "".join(f", {number:,} {word}" for number, word in open_ones if number)
    return f"{counted(counts.attempts, 'attempt')}: {counts.finished:,} finished, {counts.failed:,} failed{others}."


def functions_section(functions: Functions) -> Html:
    heading = tag("h2", "By function")
    if not functions.rows:
        return join([heading, nothing(NO_TASKS)])
    rows = [_function_row(row) for row in functions.rows]
    more = (
        tag("p", quiet(f"{functions.left_out:,} functions that took less time are not listed."))
        if functions.left_out
        else ""
    )
    return join([heading, _numbers("By function", _FUNCTION_HEADERS, rows, name="functions"), more])


def resources_section(resources: Resources) -> Html:
    heading = tag("h2", "Resource-hours")
    if not resources.rows:
        return join([heading, nothing("No node and no task said what resources it has or needs.")])
    told = (
        f"What was used rests on {resources.samples} measurements of the machines."
        if resources.samples > 1
        else "What was really used was not measured."
    )
    rows = [_resource_row(row) for row in resources.rows]
    return join([heading, _numbers("Resource-hours", _RESOURCE_HEADERS, rows), tag("p", quiet(told))])


def _numbers(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], name: str = "") -> Html:
    """A table of names and numbers."""
    return table(caption, headers, rows, name=name, hides_caption=True, numbers=headers[1:])


def _function_row(row: FunctionRow) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.attempts:,}",
        f"{row.failed:,}",
        in_words(row.p50_seconds),
        in_words(row.p95_seconds),
        in_words(row.total_seconds if row.p50_seconds is not None else None),
    )


def _resource_row(row: ResourceHours) -> tuple[str, ...]:
    share = f" ({row.asked / row.available:.0%})" if row.available and row.asked else ""
    used = (
        ""
        if row.used is None
        else f"{hours_in_words(row.used)}{f' ({row.used / row.available:.0%})' if row.available else ''}"
    )
    return _resource_name(row), f"{hours_in_words(row.asked)}{share}", hours_in_words(row.available), used


def _resource_name(row: ResourceHours) -> str:
    return f"{row.name} GiB" if row.name.endswith("memory") else row.name


def in_words(value: float | None) -> str:
    """Seconds as people say them; three digits are enough to compare."""
    if value is None:
        return ""
    if value < 0.9995:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    hours = value / 3600
    return f"{value / 60:.3g} min" if hours < 2 else f"{hours:.3g} h" if hours < 999.5 else f"{hours:,.0f} h"
