"""Operations on what nodes used: curves over time, and the hours and the cost that makes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from raykeeper.history.curves.model import Curves
from raykeeper.history.curves.read import read_curves
from raykeeper.history.curves.scope import LEAST_POINTS, MOST_POINTS, POINTS, Scope, job_scope, session_scope
from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.keeper_api.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.overview.usage import Usage, job_usage, session_usage
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History

_IS_NODE = "SELECT count(*) AS number FROM nodes WHERE node_id = $node_id"


class CurvesQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which time, and how finely."""

    points: Annotated[
        int,
        Meta(
            ge=LEAST_POINTS,
            le=MOST_POINTS,
            description="Parts of the time at most; each has a round width of ten seconds or more.",
        ),
    ] = POINTS
    since: Annotated[datetime, Meta(tz=True, description="Only what was measured then or later.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Only what was measured before.")] | None = None


async def get_session_curves(call: Call[CurvesQuery]) -> Curves:
    return await curves_of_session(await call.open(), call.query)


async def curves_of_session(context: SessionContext, query: CurvesQuery) -> Curves:
    """What all nodes of a session used. Raises InvalidQuery."""
    return await _curves(context, await session_scope(context), query)


async def get_node_curves(call: Call[CurvesQuery]) -> Curves:
    context, node_id = await call.open(), call.names["node"]
    whole = await session_scope(context)
    [found] = await context.rows(_IS_NODE, {"node_id": node_id})
    if not found["number"] and all(node.node_id != node_id for node in context.session.nodes):
        raise NotFound(f"the session has no node {node_id}")
    return await _curves(context, Scope(whole.begin, whole.end, (node_id,)), call.query, of_one_node=True)


async def get_job_curves(call: Call[CurvesQuery]) -> Curves:
    return await curves_of_job(await call.open(), call.names["job"], call.query)


async def curves_of_job(context: SessionContext, job: str, query: CurvesQuery) -> Curves:
    """What the nodes of a job used while it ran. Raises NotFound and InvalidQuery."""
    try:
        scope = await job_scope(context, job)
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc
    return await _curves(context, scope, query)


async def get_session_usage(call: Call[NoQuery]) -> Usage:
    return await usage_of_session(await call.open(), call.history)


async def usage_of_session(context: SessionContext, history: History) -> Usage:
    """Hours and cost of all nodes of a session."""
    return await context.remembered("usage", lambda: session_usage(context, history.prices), _is_read)


async def get_job_usage(call: Call[NoQuery]) -> Usage:
    return await usage_of_job(await call.open(), call.names["job"], call.history)


async def usage_of_job(context: SessionContext, job: str, history: History) -> Usage:
    """Hours and cost of a job's nodes while it ran. Raises NotFound."""
    try:
        return await context.remembered(("usage", job), lambda: job_usage(context, job, history.prices), _is_read)
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


async def _curves(context: SessionContext, scope: Scope, query: CurvesQuery, *, of_one_node: bool = False) -> Curves:
    if query.since and query.until and query.since >= query.until:
        raise InvalidQuery("parameter 'until': it is not later than 'since'")
    within = scope.within(query.since, query.until)
    return await context.remembered(
        ("curves", within, query.points, of_one_node),
        lambda: read_curves(context, within, query.points, of_one_node=of_one_node),
        _is_read,
    )


def _is_read(answer: Curves | Usage) -> bool:
    return not answer.unread_hours


CURVE_OPERATIONS = (
    Operation(
        "get_session_curves",
        f"{SESSION}/curves",
        "What all nodes of a session used over time: CPU, memory, GPUs, object store, disk and network",
        CurvesQuery,
        Curves,
        get_session_curves,
    ),
    Operation(
        "get_node_curves",
        f"{SESSION}/nodes/{{node}}/curves",
        "What one node used over time, and each of its GPUs",
        CurvesQuery,
        Curves,
        get_node_curves,
    ),
    Operation(
        "get_job_curves",
        f"{SESSION}/jobs/{{job}}/curves",
        "What the nodes of a job used over time while it ran, whoever else ran there too",
        CurvesQuery,
        Curves,
        get_job_curves,
    ),
    Operation(
        "get_session_usage",
        f"{SESSION}/usage",
        "Hours of CPU, GPU and memory of a session, what each node used, and the cost by the price list",
        NoQuery,
        Usage,
        get_session_usage,
    ),
    Operation(
        "get_job_usage",
        f"{SESSION}/jobs/{{job}}/usage",
        "Hours of CPU, GPU and memory of a job's nodes while it ran, and the cost by the price list",
        NoQuery,
        Usage,
        get_job_usage,
    ),
)
