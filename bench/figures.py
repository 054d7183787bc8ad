"""What a benchmark found, and the table that sets it beside the bar and the figure in the documentation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

DOCUMENTED = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_ROW = re.compile(r"^\| (?P<name>[^|]+?) \|[^|]*\| (?P<value>[\d.,]+)")


@dataclass(frozen=True)
class Figure:
    """One measured number. `baseline` says what the same machine did for the bare minimum in the same run."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    better: Literal["less", "more"] = "less"
    baseline: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is reached; None where there is none."""
        if self.bar is None:
            return None
        return self.value <= self.bar if self.better == "less" else self.value >= self.bar


def documented_figures(page: str) -> dict[str, float]:
    """The figures that a page's tables give, by name: the third column of each row that starts with a number there."""
    rows = (match for line in page.splitlines() if (match := _ROW.match(line)))
    return {row["name"]: float(row["value"].replace(",", "")) for row in rows}


def show(figures: Iterable[Figure], machine: str) -> None:
    """Print the table. A benchmark never fails a build: a missed bar is said, not raised."""
    known = documented_figures(DOCUMENTED.read_text()) if DOCUMENTED.exists() else {}
    table = Table(title=machine, title_justify="left")
    for heading in ("figure", "measured", "bar", "", "in the docs", "baseline of this run"):
        table.add_column(heading)
    for figure in figures:
        table.add_row(*_cells(figure, known.get(figure.name)))
    Console(width=160).print(table)


def show_rows(figures: Iterable[Figure], machine: str) -> None:
    """Print the figures as rows of the documentation's tables."""
    print(f"{machine}\n")
    for figure in figures:
        cells = (figure.name, f"{_bar(figure)} {figure.unit}" if figure.bar else "", _number(figure), figure.baseline)
        print(f"| {' | '.join(cells)} |")


def said(figure: Figure) -> str:
    """One line: the figure, and whether its bar is reached."""
    verdict = {None: "", True: f" ({_bar(figure)}: met)", False: f" ({_bar(figure)}: MISSED)"}[figure.is_met]
    return f"{figure.name}: {_number(figure)} {figure.unit}{verdict}"


def _number(figure: Figure) -> str:
    """With three digits that count; none behind the point where there are three before it."""
    if math.isnan(figure.value):
        return "nothing"
    return f"{figure.value:,.0f}" if abs(figure.value) >= 100 else f"{figure.value:,.3g}"


def _bar(figure: Figure) -> str:
    sign = "<=" if figure.better == "less" else ">="
    return "" if figure.bar is None else f"{sign} {figure.bar:,g}"


def _cells(figure: Figure, documented: float | None) -> tuple[str, ...]:
    return (
        figure.name,
        f"{_number(figure)} {figure.unit}",
        _bar(figure),
        {None: "", True: "met", False: "MISSED"}[figure.is_met],
        "" if documented is None else f"{documented:,g}",
        figure.baseline,
    )
