"""Ray's own filter, run by Ray's own Python: reads cases as JSON on stdin, writes what Ray makes of each on stdout.

A case is a list of rows, the name of Ray's schema, and one filter. What comes out is the numbers of the rows that pass.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

do_filter = import_module("ray.dashboard.state_api_utils").do_filter
common = import_module("ray.util.state.common")


def answer(case: dict[str, Any], rows: list[dict[str, Any]]) -> list[int]:
    wanted, schema = [tuple(case["filter"])], getattr(common, case["schema"])
    return [number for number, row in enumerate(rows) if do_filter([row], wanted, schema, detail=True)]


def main() -> None:
    given = json.load(sys.stdin)
    json.dump([answer(case, given["rows"][case["rows"]]) for case in given["cases"]], sys.stdout)


main()
