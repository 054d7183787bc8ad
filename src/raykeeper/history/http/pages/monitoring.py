"""What clusters use, from what collectors sampled: where there is no Grafana, these pages are the monitoring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.keeper_api.curves import CurvesQuery, curves_of_session, usage_of_session
from raykeeper.history.http.keeper_api.sessions import ListedSession, SessionsQuery, find_sessions, listed_session
from raykeeper.history.http.pages.curve_charts import POINTS, curves_section, usage_section
from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.sessions import first_steps
from raykeeper.history.http.pages.widgets import ago, duration, facts, link, nothing, state_badge, table
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.store.session_state import State
from raykeeper.history.urls import MONITORING_PATH, overview_path, session_monitoring_path, session_path
from raykeeper.layout.keys import SessionId

_ROWS = 25
_HEADERS = ("Cluster", "State", "Namespace", "Started", "Ran")


async def get_monitoring(_: Request, history: History) -> Response:
    """Clusters that run, and those that ran last, each with the way to its curves."""
    running, newest = await asyncio.gather(
        find_sessions(history, SessionsQuery(limit=_ROWS, state="running")),
        find_sessions(history, SessionsQuery(limit=2 * _ROWS)),
    )
    now = history.clock.now()
    past = [one for row in newest.rows if (one := listed_session(row)).state is not State.RUNNING]
    body = [
        tag("p", "What the machines of Ray clusters used: CPU, memory, GPUs, object store, disk and network."),
        _clusters("Running", [listed_session(row) for row in running.rows], now, "No cluster runs now."),
        _clusters("Past", past[:_ROWS], now, "") if past else EMPTY,
    ]
    if not running.rows and not newest.rows:
        body = [first_steps("There are no clusters yet. Their curves appear here while they run, and stay afterwards.")]
    return page_response("Monitoring", join(body), section="sessions")


def _clusters(title: str, sessions: Sequence[ListedSession], now: datetime, none: str) -> Html:
    heading = tag("h2", title)
    if not sessions:
        return join([heading, nothing(none)])
    rows = [_row(one, now) for one in sessions]
    return join([heading, table(title, _HEADERS, rows, hides_caption=True, numbers=("Ran",))])


def _row(one: ListedSession, now: datetime) -> tuple[str, ...]:
    session = SessionId(one.namespace, one.cluster, one.session)
    ended = one.ended_at or (now if one.state is State.RUNNING else None)
    return (
        link(one.cluster, session_monitoring_path(session)),
        state_badge(one.state, is_doubtful=one.is_doubtful),
        one.namespace,
        ago(one.started_at, now),
        duration(ended - one.started_at if ended else None),
    )


async def get_session_monitoring(_: Request, context: SessionContext, history: History) -> Response:
    """What all nodes of one session used, over its time and in hours."""
    session = context.session.id
    curves, usage = await asyncio.gather(
        curves_of_session(context, CurvesQuery(points=POINTS)), usage_of_session(context, history)
    )
    ways = join(
        [link("Session", overview_path(session)), " · ", link("Ray dashboard", session_path(session))],
    )
    body = join([facts([("Session", session.session), ("More", ways)]), curves_section(curves), usage_section(usage)])
    crumbs = (Crumb("Monitoring", MONITORING_PATH), *session_crumbs(session)[1:])
    return page_response(
        f"Resources of {session.cluster}", body, section="sessions", crumbs=crumbs, styles=("job.css",)
    )
