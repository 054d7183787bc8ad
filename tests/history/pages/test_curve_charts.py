"""Charts of what nodes used, and the table of hours: whole, labelled, and honest about what is not known."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from raykeeper.history.curves.model import Curve, Curves
from raykeeper.history.http.pages.curve_charts import curves_section, usage_section
from raykeeper.history.overview.usage import Cost, Usage, UsageHours

BEGIN = datetime(2026, 11, 17, 8, tzinfo=UTC)
END = BEGIN + timedelta(seconds=30)
CPU = Curve("cpu", "CPUs", (1.0, None, 3.0), (0.0, None, 2.0), (2.0, None, 4.0), (4.0, 4.0, 4.0), None)


def curves(*some: Curve, notes: tuple[str, ...] = ()) -> Curves:
    return Curves(BEGIN, END, 10, 10, (0, 10, 20), (1, 0, 1), some, (), "sampled", notes, 0)


def test_a_curve_is_drawn_below_what_the_nodes_had_and_told_in_words() -> None:
    drawn = curves_section(curves(CPU, notes=("One node was not measured.",)))
    assert "mean 2 CPUs, peak 4 CPUs of 4 CPUs" in drawn
    assert 'aria-label="CPU: mean 2 CPUs' in drawn
    assert "One node was not measured." in drawn
    heights = [float(point.partition(",")[2]) for point in re.findall(r"[\d.]+,[\d.]+", drawn.partition("<svg")[2])]
    assert (min(heights), max(heights)) == (0, 100)


def test_a_gap_in_the_measurements_is_a_gap_and_not_drawn_as_no_use() -> None:
    drawn = curves_section(curves(CPU))
    polygons = re.findall(r'<polygon points="([^"]*)"', drawn)
    places = [[float(point.partition(",")[0]) for point in one.split()] for one in polygons]
    assert [(min(one), max(one)) for one in places] == [(0, 333.3), (666.7, 1000)] * 2, "each layer, before and after"
    assert "not measured where nothing is drawn" in drawn
    whole = replace(CPU, mean=(1.0, 0.0, 3.0), min=(0.0, 0.0, 2.0), max=(2.0, 0.0, 4.0))
    unbroken = curves_section(curves(whole))
    assert unbroken.count("<polygon") == 2
    assert "not measured" not in unbroken


def test_bytes_are_told_in_units_that_people_use() -> None:
    memory = Curve("memory", "bytes", (3.2e9,), (3e9,), (4.5e9,), None, None)
    sent = Curve("network_sent", "bytes/s", (900.0,), (0.0,), (2.5e6,), None, None)
    drawn = curves_section(curves(memory, sent))
    assert "mean 3.2 GB, peak 4.5 GB" in drawn
    assert "mean 900 B/s, peak 2.5 MB/s" in drawn


def test_without_measurements_it_is_said() -> None:
    assert "No measurements of the machines were recorded." in curves_section(curves())


def test_hours_and_their_cost_are_told() -> None:
    hours = (UsageHours("CPU", 4.0, None, 2.0, 1.0), UsageHours("memory", 8.0, None, None, 2.0))
    cost = Cost("EUR", 1.5, 0.5, (), 1)
    shown = usage_section(Usage(BEGIN, END, hours, (), 0, 0, cost, "sampled", ("Others ran there, too.",), 0))
    assert "memory GiB" in shown
    assert "1.50 EUR" in shown
    assert "of which 0.50 was used; 1 node without a price" in shown
    assert "Others ran there, too." in shown
