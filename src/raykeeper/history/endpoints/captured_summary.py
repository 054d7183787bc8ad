"""Summaries of a cluster that was captured without events."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery, summary_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.captured import CAPTURED_ACTORS, CAPTURED_TASKS, captured_page, captured_rows
from raykeeper.history.endpoints.functionsummary import BY_FUNCTION, BY_LINEAGE, function_summary
from raykeeper.history.endpoints.lineage import Actor, Attempt, lineage_tree
from raykeeper.history.endpoints.statequery import StateQuery
from raykeeper.history.endpoints.tasks import COLUMNS


async def captured_task_summary(asked: Asked, query: StateQuery, summary_by: str) -> Response | None:
    """Of tasks in memory; None where there are tables."""
    page = await captured_page(asked, replace(query, limit=sys.maxsize, is_detailed=True), CAPTURED_TASKS, COLUMNS)
    if page is None:
        return None
    attempts = [captured_attempt(row) for row in page.rows]
    numbers = Counter((task.name, task.type, task.state) for task in attempts)
    summary = function_summary(
        {"func": func, "type": kind, "state": state, "number": number}
        for (func, kind, state), number in numbers.items()
    )
    if summary_by == BY_LINEAGE:
        actors = [
            Actor(row["actor_id"], row["repr_name"] or row["class_name"])
            for row in await captured_rows(asked, CAPTURED_ACTORS) or []
        ]
        summary |= {"summary": await asyncio.to_thread(lineage_tree, attempts, actors), "summary_by": BY_LINEAGE}
    elif summary_by not in BY_FUNCTION:
        raise InvalidQuery(f"summary_by={summary_by} is unknown")
    return summary_response(page, summary)


def captured_attempt(row: Mapping[str, Any]) -> Attempt:
    """From a row of Ray's state API."""
    created = row["creation_time_ms"]
    return Attempt(
        task_id=row["task_id"],
        name=row["name"] or row["func_or_class_name"],
        class_name=row["func_or_class_name"].split(".")[0],
        type=row["type"],
        state=row["state"],
        actor_id=row["actor_id"],
        parent_task_id=row["parent_task_id"],
        created_ms=None if created is None else int(created),
    )
