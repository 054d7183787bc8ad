"""`python -m bench [name ...]`: runs the benchmarks and prints their figures. Never fails for a missed bar."""

from __future__ import annotations

import importlib
import sys

from bench.figures import Figure, show
from bench.machine import describe

BENCHMARKS = (
    "startup",
    "gets",
    "informer",
    "floor",
    "idle",
    "rayclusters",
    "many_rayclusters",
    "collector_events",
    "collector_logs",
    "collector_process",
    "history_ingest",
    "history_pages",
    "history_users",
    "history_reading",
    "pages",
    "search",
    "report",
    "demo",
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    for name in names or BENCHMARKS:
        print(f"--- {name}", file=sys.stderr)
        figures += importlib.import_module(f"bench.{name}").run()
    show(figures, describe())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
