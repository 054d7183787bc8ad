"""Attempts counted by name and state, as Ray sums them up. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from raykeeper.history.asked import Row

BY_FUNCTION = ("func_name", "task_name")
BY_LINEAGE = "lineage"

_TOTAL_OF_TYPE = {
    "NORMAL_TASK": "total_tasks",
    "ACTOR_TASK": "total_actor_tasks",
    "ACTOR_CREATION_TASK": "total_actor_scheduled",
}


def function_summary(rows: Iterable[Row]) -> dict[str, Any]:
    """Ray's summary by name. Of several types that share a name, the most frequent is shown."""
    rows = list(rows)
    summary: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = summary.setdefault(
            row["func"], {"func_or_class_name": row["func"], "type": row["type"], "state_counts": {}}
        )
        counts = entry["state_counts"]
        counts[row["state"]] = counts.get(row["state"], 0) + row["number"]
    return {"summary": summary, **_totals((row["type"], row["number"]) for row in rows), "summary_by": BY_FUNCTION[0]}


def _totals(counted: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals = dict.fromkeys(_TOTAL_OF_TYPE.values(), 0)
    for kind, tasks in counted:
        if kind in _TOTAL_OF_TYPE:
            totals[_TOTAL_OF_TYPE[kind]] += tasks
    return totals
