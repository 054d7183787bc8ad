"""Paths as SQL literals, for the places where DuckDB takes no parameter (views, COPY)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def literals(paths: Iterable[Path]) -> str:
    return f"[{', '.join(map(literal, paths))}]"
