"""The page of one session. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.report import REPORT_STYLES, why_failed
from raykeeper.history.http.pages.task_tables import functions_section, resources_section, tasks_section
from raykeeper.history.http.pages.timeline_svg import Scale, Series, axis, chart, lanes
from raykeeper.history.http.pages.widgets import (
    duration,
    facts,
    link,
    moment,
    note,
    nothing,
    quiet,
    state_badge,
    status_badge,
    table,
)
from raykeeper.history.overview.model import (
    JobRow,
    Lane,
    Loss,
    Mark,
    NodesOverTime,
    NodeSpan,
    SessionFacts,
    SessionOverview,
    Span,
)
from raykeeper.history.report.model import Report
from raykeeper.history.store.session_state import State
from raykeeper.history.urls import (
    compare_path,
    job_path,
    report_path,
    search_path,
    session_monitoring_path,
    session_path,
)
from raykeeper.layout.keys import SessionId

_JOB_HEADERS = ("Job", "Status", "Started", "Took", "Why")
_REFRESH_SECONDS = 3
_LONG_AGO = datetime(1971, 1, 1, tzinfo=UTC)  # nothing was sealed yet: "as of" is 1970


def session_page(overview: SessionOverview, report: Report) -> HTMLResponse:
    about = overview.facts
    session = id_of(about)
    body = join(
        [
            progress_note(about),
            _session_facts(
                about,
                link("Resources over time", session_monitoring_path(session)),
                link("Search this session", search_path(session)),
                link("Compare with another run", compare_path(str(session))),
            ),
            why_failed(report),
            _jobs(overview, session),
            tasks_section(overview.counts, overview.tasks),
            _nodes(overview.nodes),
            resources_section(overview.resources),
            _losses(overview.losses),
            functions_section(overview.functions),
        ]
    )
    response = page_response(
        about.session, body, section="sessions", crumbs=session_crumbs(session), styles=REPORT_STYLES
    )
    if about.unread_bytes:
        response.headers["Refresh"] = str(_REFRESH_SECONDS)
    return response


def id_of(about: SessionFacts) -> SessionId:
    return SessionId(about.namespace, about.cluster, about.session)


def progress_note(about: SessionFacts) -> Html:
    """While a session is being read for the first time, numbers are too low, and it is said so."""
    if not about.unread_bytes:
        return EMPTY
    done = 1 - about.unread_bytes / about.total_bytes
    words = f"This session is being read for the first time: {done:.0%} are done. Until then numbers are too low."
    return note(words, "busy")


def _session_facts(about: SessionFacts, *more: Html) -> Html:
    session = id_of(about)
    until = about.ended_at or about.as_of
    has_data = about.as_of > _LONG_AGO
    lasted = duration(until - about.started_at) if about.started_at and has_data else ""
    links = [link("Ray dashboard", session_path(session)), link("Why it failed", report_path(session)), *more]
    return facts(
        [
            ("State", state_badge(State(about.state), is_doubtful=about.is_doubtful)),
            ("Started", moment(about.started_at)),
            ("Ended", moment(about.ended_at)),
            ("Lasted", lasted),
            ("As of", moment(about.as_of) if has_data else "no data has arrived yet"),
            ("Ray", about.ray_version),
            ("Python", about.python_version),
            ("Owner", f"{about.owner_kind} {about.owner_name}".strip()),
            ("Cluster uid", about.cluster_uid),
            ("More", join(links, " · ")),
        ]
    )


def _jobs(overview: SessionOverview, session: SessionId) -> Html:
    heading = tag("h2", "Jobs")
    if not overview.jobs:
        return join([heading, nothing("No job was submitted, and no driver connected.")])
    rows = [_job_row(job, session) for job in overview.jobs]
    left_out = overview.jobs_left_out
    more = tag("p", quiet(f"{left_out:,} earlier jobs are not listed.")) if left_out else EMPTY
    return join([heading, table("Jobs", _JOB_HEADERS, rows, name="jobs", hides_caption=True, numbers=("Took",)), more])


def _job_row(job: JobRow, session: SessionId) -> tuple[str, ...]:
    took = duration(job.ended_at - job.started_at) if job.started_at and job.ended_at else ""
    return (
        join([link(job.id, job_path(session, job.id)), tag("br"), quiet(job.entrypoint)]),
        status_badge(job.status),
        moment(job.started_at),
        took,
        job.failure,
    )


def _nodes(nodes: NodesOverTime) -> Html:
    heading = tag("h2", "Nodes over time")
    if not nodes.rows:
        return join([heading, nothing("No node is recorded.")])
    scale = Scale(nodes.begin, nodes.begin + timedelta(seconds=nodes.width_seconds * len(nodes.alive)))
    rows = [_node_lane(node, scale) for node in nodes.rows]
    more = tag("p", quiet(f"{nodes.left_out:,} more nodes are counted above.")) if nodes.left_out else EMPTY
    alive = chart("Alive", (Series("nodes", "quiet", nodes.alive),), scale, "at a time")
    return join([heading, alive, lanes(rows, scale), axis(scale, is_beside=True), more])


def _node_lane(node: NodeSpan, scale: Scale) -> Lane:
    had = ", ".join(f"{amount:g} {name}" for name, amount in sorted(node.resources.items()) if name in ("CPU", "GPU"))
    words = ", ".join(words for words in ("head" if node.is_head else "", had, node.death or "") if words)
    if node.started_at is None:
        return Lane("nodes", node.name, words or "never started")
    end = node.ended_at or scale.end
    marks = (Mark(end, "normal", node.death),) if node.death else ()
    return Lane(
        "nodes", node.name, words, spans=(Span(node.started_at, end, "alive", f"node {node.node_id}"),), marks=marks
    )


def _losses(losses: tuple[Loss, ...]) -> Html:
    heading = tag("h2", "Data completeness")
    if not losses:
        return join([heading, tag("p", "Complete: nothing is known to be missing.")])
    return join([heading, tag("ul", *(tag("li", f"{loss.what}: {loss.text}") for loss in losses))])
