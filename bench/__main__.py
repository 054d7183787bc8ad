"""`python -m bench [name ...]`: runs the benchmarks and prints their figures. Never fails for a missed bar."""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.figures import Figure, said, show, show_rows
from bench.machine import describe

BENCHMARKS: Mapping[str, str] = {
    "startup": "10 s",
    "gets": "1 min",
    "informer": "2 min",
    "floor": "1 min",
    "idle": "2 min",
    "operator_process": "4 min",
    "rayclusters": "6 min",
    "many_rayclusters": "4 min",
    "dead_heads": "4 min",
    "rayjobs": "6 min",
    "rayjob_on_node": "5 min",
    "charts_on_node": "5 min",
    "apiserver": "3 min",
    "images": "1 min",
    "rayservices": "6 min",
    "rayservice_on_node": "12 min",
    "collector_events": "2 min",
    "collector_logs": "6 min",
    "collector_process": "6 min",
    "history_ingest": "4 min",
    "history_pages": "5 min",
    "history_users": "2 min",
    "history_reading": "2 min",
    "login": "10 s",
    "curves": "4 min",
    "lists": "3 min",
    "retention": "4 min",
    "pages": "4 min",
    "timeline": "4 min",
    "search": "2 min",
    "report": "1 min",
    "demo": "1 min",
}
"""Every benchmark, and how long it takes on two cores that have nothing else to do."""

DESCRIPTION = """\
Runs the benchmarks, one after the other, and prints what they measured beside the bar, the figure in
docs/benchmarks.md and a baseline of the same run. A missed bar is said and fails nothing.
"""
SIZES = """\
history_ingest, history_pages, pages and timeline take sizes from RAYKEEPER_BENCH_TASKS, such as 10000,200000. Ten
million (10000000) are for the first two, and take each of them half an hour. All benchmarks together take an hour
and a half.
"""


def main(words: Sequence[str]) -> int:
    """Run the named benchmarks, or all."""
    asked = _parser().parse_args(words)
    unknown = [name for name in asked.names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    try:
        for name in asked.names or BENCHMARKS:
            figures += _measured(name)
    finally:  # whoever has waited for half an hour sees what there is
        (show_rows if asked.markdown else show)(figures, describe())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench",
        description=DESCRIPTION,
        epilog="\n".join(["benchmarks:", *_table(), "", SIZES]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the benchmarks to run; all if none is named")
    parser.add_argument("--markdown", action="store_true", help="print rows as docs/benchmarks.md has them")
    return parser


def _table() -> Iterator[str]:
    """A line for each benchmark: its name, how long it takes, and the first sentence about it."""
    for name, duration in BENCHMARKS.items():
        text = ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text())) or ""
        yield f"  {name:<18} {duration:>6}  {text.splitlines()[0]}"


def _measured(name: str) -> Iterator[Figure]:
    """The figures of one benchmark, each told as soon as it is there. One that breaks does not end the others."""
    print(f"--- {name}, about {BENCHMARKS[name]}", file=sys.stderr)
    began = time.monotonic()
    try:
        for figure in importlib.import_module(f"bench.{name}").run():
            print(f"    {said(figure)}", file=sys.stderr)
            yield figure
    except Exception:
        traceback.print_exc()
        yield Figure(f"{name}: broke off, see above", float("nan"), "")
    print(f"    took {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
