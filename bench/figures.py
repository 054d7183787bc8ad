"""What a benchmark found, and the table that sets it beside the bar and the figure in the documentation."""

from __future__ import annotations

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


def _cells(figure: Figure, documented: float | None) -> tuple[str, ...]:
    sign = "<=" if figure.better == "less" else ">="
    return (
        figure.name,
        f"{figure.value:,.4g} {figure.unit}",
        "" if figure.bar is None else f"{sign} {figure.bar:,g}",
        {None: "", True: "met", False: "MISSED"}[figure.is_met],
        "" if documented is None else f"{documented:,g}",
        figure.baseline,
    )
