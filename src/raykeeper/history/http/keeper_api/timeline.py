"""Operations behind a timeline: what a range of it shows, the tasks in a part of it, and one task."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from msgspec import Meta

from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.keeper_api.operation import SESSION, Call, Operation, Query
from raykeeper.history.overview.timeline import (
    DEFAULT_LANES,
    DEFAULT_WIDTH,
    LANES_LIMIT,
    WIDTHS,
    TimelineQuery,
    TimelineView,
    timeline_view,
)
from raykeeper.history.overview.timeline_index import Grouping
from raykeeper.history.overview.timeline_tasks import BRUSHED_TASKS, Brushed, TaskCard, brushed_tasks, task_card
from raykeeper.history.query.context import SessionContext

_OFFSET_LIMIT = 1_000_000  # more lanes than a session has actors
_LANE_CHARS = 13  # an id and a comma
_TASK_CHARS = 100
_ATTEMPT_LIMIT = 2**31 - 1


class RangeQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody looks at."""

    start: Annotated[datetime, Meta(tz=True, description="The range begins then; else with the first task.")] | None = (
        None
    )
    end: Annotated[datetime, Meta(tz=True, description="The range ends before; else with the last task.")] | None = None
    group: Annotated[
        Grouping,
        Meta(description="What has a lane of its own. With `actor`, tasks without an actor are in lanes by function."),
    ] = "actor"
    internals: Annotated[
        bool, Meta(description="Whether Ray's own actors have lanes of their own; else they share the last lane.")
    ] = False


class ViewQuery(RangeQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    width: Annotated[
        int, Meta(ge=WIDTHS[0], le=WIDTHS[1], description="Pixels there are: a bin takes three of them.")
    ] = DEFAULT_WIDTH
    limit: Annotated[int, Meta(ge=1, le=LANES_LIMIT, description="Lanes of one page.")] = DEFAULT_LANES
    offset: Annotated[int, Meta(ge=0, le=_OFFSET_LIMIT, description="Lanes before this page.")] = 0


class BrushQuery(RangeQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lanes: Annotated[
        str,
        Meta(
            max_length=LANES_LIMIT * _LANE_CHARS,
            description="Ids of lanes, with commas between them; without any, all lanes are meant.",
        ),
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=BRUSHED_TASKS, description="Tasks that are listed.")] = BRUSHED_TASKS


class TaskQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    attempt: (
        Annotated[int, Meta(ge=0, le=_ATTEMPT_LIMIT, description="Number of the attempt; else the last one.")] | None
    ) = None


async def view_of(context: SessionContext, query: ViewQuery, job: str | None) -> TimelineView:
    """Raises NotFound and InvalidQuery."""
    wanted = await _wanted(context, query, job, query.limit)
    return await timeline_view(context, replace(wanted, width=query.width, offset=query.offset))


async def _get_view(call: Call[ViewQuery]) -> TimelineView:
    return await view_of(await call.open(), call.query, call.names.get("job"))


async def _get_brushed(call: Call[BrushQuery]) -> Brushed:
    context = await call.open()
    wanted = await _wanted(context, call.query, call.names.get("job"), call.query.limit)
    return await brushed_tasks(context, wanted, [lane for lane in call.query.lanes.split(",") if lane])


async def _get_task(call: Call[TaskQuery]) -> TaskCard:
    task = call.names["task"]
    if len(task) > _TASK_CHARS:
        raise NotFound("no task has an id as long as that")
    return await task_card(await call.open(), task, call.query.attempt)


async def _wanted(context: SessionContext, query: RangeQuery, job: str | None, limit: int) -> TimelineQuery:
    if query.start is not None and query.end is not None and query.end <= query.start:
        raise InvalidQuery("parameter 'end' is not after 'start'")
    return TimelineQuery(
        query.start,
        query.end,
        group=query.group,
        folds_internals=not query.internals,
        job_id=None if job is None else await _job_id(context, job),
        limit=limit,
    )


async def _job_id(context: SessionContext, job: str) -> str:
    """Ray's id of a job; one that never had a driver has no tasks."""
    try:
        return (await find_job(context, job)).job_id or ""
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


_OF_SESSION, _OF_JOB = f"{SESSION}/timeline", f"{SESSION}/jobs/{{job}}/timeline"

TIMELINE_OPERATIONS = (
    Operation(
        "get_session_timeline",
        _OF_SESSION,
        "What ran in a range of time, in lanes: bins, or single tasks where they are few",
        ViewQuery,
        TimelineView,
        _get_view,
    ),
    Operation("get_job_timeline", _OF_JOB, "The same for the tasks of one job", ViewQuery, TimelineView, _get_view),
    Operation(
        "list_session_timeline_tasks",
        f"{_OF_SESSION}/tasks",
        "Exactly the tasks in a range of time and in some lanes, with the log lines that they wrote",
        BrushQuery,
        Brushed,
        _get_brushed,
    ),
    Operation("list_job_timeline_tasks", f"{_OF_JOB}/tasks", "The same for one job", BrushQuery, Brushed, _get_brushed),
    Operation(
        "get_task",
        f"{SESSION}/tasks/{{task}}",
        "One attempt of a task: its error, what it asked for, and its log lines",
        TaskQuery,
        TaskCard,
        _get_task,
    ),
)
