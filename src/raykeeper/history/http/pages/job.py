"""The page of one job: what it is, why it failed, and tabs for all else. Every tab has its own address."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from raykeeper.history.entities.job import script_name
from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.keeper_api.curves import CurvesQuery, curves_of_job, usage_of_job
from raykeeper.history.http.keeper_api.overview import overview_of_job, report_of
from raykeeper.history.http.pages.curve_charts import POINTS
from raykeeper.history.http.pages.frame import Crumb, page_response
from raykeeper.history.http.pages.job_tabs import (
    actors_tab,
    environment_tab,
    resources_tab,
    seen_before,
    tasks_tab,
    timeline_picture,
)
from raykeeper.history.http.pages.log_viewer import SCRIPTS as LOG_SCRIPTS
from raykeeper.history.http.pages.log_viewer import STYLES as LOG_STYLES
from raykeeper.history.http.pages.log_viewer import logs_tab
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.report import REPORT_STYLES, outcome_badge, report_page, why_body
from raykeeper.history.http.pages.session import id_of, progress_note
from raykeeper.history.http.pages.timeline import SCRIPTS as TIMELINE_SCRIPTS
from raykeeper.history.http.pages.timeline import STYLES as TIMELINE_STYLES
from raykeeper.history.http.pages.timeline import timeline_section, timeline_tab
from raykeeper.history.http.pages.widgets import copy_button, duration, link, moment, nothing, quiet
from raykeeper.history.jobs_list.find import jobs_with_failure
from raykeeper.history.overview.job_rows import AttemptsRequest, actors_of_job, attempts_of_job, attempts_of_task
from raykeeper.history.overview.job_rows import nodes_of_job as nodes_of
from raykeeper.history.overview.model import JobOverview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.markdown import to_markdown
from raykeeper.history.report.model import Report
from raykeeper.history.urls import JobTab, compare_path, job_path, overview_path, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.masking import masked_value

_STYLES = ("job.css", *REPORT_STYLES)
_SCRIPTS = ("job.js",)
_REFRESH_SECONDS = 10
_SEEN_SECONDS = 0.3  # what takes longer is in memory for whoever looks next
_WORDS_CHARS = 200
_LAST_START = 10_000_000


@dataclass(frozen=True)
class JobView:
    """What every tab has at hand."""

    context: SessionContext
    history: History
    request: Request
    overview: JobOverview
    report: Report

    @property
    def session(self) -> SessionId:
        return id_of(self.overview.facts)

    @property
    def job(self) -> str:
        return self.overview.job.id

    def path(self, tab: JobTab = "") -> str:
        return job_path(self.session, self.job, tab)


async def get_job_page(request: Request, context: SessionContext, history: History) -> Response:
    """The tab that the path names; without one, why the job failed."""
    name, wanted = request.path_params["job"], request.path_params.get("tab", "")
    tab = next((one for one in _TABS if one == wanted), None)
    if tab is None:
        raise NotFound(f"a job has no tab {wanted[:_WORDS_CHARS]}")
    if not tab and "search" in request.query_params:  # as the address of a search in the driver's log was once spelled
        words = urlencode({"filter": request.query_params["search"][:_WORDS_CHARS]})
        return RedirectResponse(f"{job_path(context.session.id, name, 'logs')}?{words}", 302)
    report = await report_of(context, name)
    try:
        overview = await overview_of_job(context, name)
    except NotFound:  # a RayJob that never got as far as a job of Ray has a report all the same
        return report_page(report)
    view = JobView(context, history, request, overview, report)
    body = await _TABS[tab].body(view)
    return body if isinstance(body, Response) else _page(view, tab, body)


async def get_job_markdown(request: Request, context: SessionContext, _: History) -> Response:
    """The report as text to be pasted into a ticket or a chat."""
    report = await report_of(context, request.path_params["job"])
    return PlainTextResponse(to_markdown(masked_value(report)), headers={"Cache-Control": "no-store"})


def _page(view: JobView, tab: JobTab, body: Html) -> HTMLResponse:
    overview, session = view.overview, view.session
    job = overview.job
    name = script_name(job.entrypoint) or job.id
    crumbs = (
        Crumb("Jobs", "/jobs"),
        Crumb(f"{session.namespace} / {session.cluster}", f"/jobs?{_cluster_query(session)}"),
        Crumb(session.session, overview_path(session)),
    )
    whole = join([progress_note(overview.facts), _about(view, name), _tabs(view, tab), tag("div", body, class_="tab")])
    styles, scripts = (*_STYLES, *_TABS[tab].styles), (*_SCRIPTS, *_TABS[tab].scripts)
    response = page_response(name, whole, section="jobs", crumbs=crumbs, styles=styles, scripts=scripts)
    if overview.facts.unread_bytes:
        response.headers["Refresh"] = str(_REFRESH_SECONDS)
    return response


def _cluster_query(session: SessionId) -> str:
    return urlencode({"namespace": session.namespace, "cluster": session.cluster})


def _about(view: JobView, name: str) -> Html:
    """How it ended, when and how long; Ray's own status only where it says another thing."""
    overview = view.overview
    job, counts, facts = overview.job, overview.counts, overview.facts
    until = job.ended_at or facts.as_of
    ran = duration(until - job.started_at) if job.started_at else ""
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    known = [
        ("Started", moment(job.started_at)),
        ("Ran" if job.ended_at else "Runs for", ran),
        ("Attempts", f"{counts.finished:,} finished{failed}" if counts.attempts else ""),
        ("Ray", facts.ray_version),
    ]
    outcome = view.report.outcome
    is_agreed = job.status.lower() == outcome.value or (job.status == "SUCCEEDED" and outcome.is_well)
    status = EMPTY if is_agreed else quiet(f"Ray says {job.status} ")
    first = (outcome_badge(view.report), " ", status, tag("code", job.id) if job.id != name else EMPTY)
    second = join([tag("span", quiet(f"{words} "), value) for words, value in known if value], " ")
    command = tag("p", tag("code", job.entrypoint), class_="entrypoint") if job.entrypoint else EMPTY
    return tag(
        "div",
        tag("p", *first),
        tag("p", second, class_="about"),
        command,
        class_="job-head",
        data_live=job.ended_at is None and facts.state == "running",
    )


def _tabs(view: JobView, current: JobTab) -> Html:
    """Links, so that each can be sent to somebody; and what is done with the job as a whole."""
    items = [
        tag("li", tag("a", one.label(view), href=view.path(name), aria_current="page" if name == current else None))
        for name, one in _TABS.items()
    ]
    dashboard = f"{session_path(view.session)}#/jobs/{view.overview.job.job_id or view.job}"
    items.append(tag("li", link("Ray dashboard ↗", dashboard)))
    return join([tag("nav", tag("ul", *items), aria_label="Job", class_="tabs"), _actions(view)])


def _actions(view: JobView) -> Html:
    run = f"{view.session}/{view.job}"
    markdown = tag("a", "Copy as Markdown", href=f"{view.path()}/report.md", class_="button", data_copies_text=True)
    compare = tag("a", "Compare with last success", href=compare_path(run), class_="button")
    file = tag("a", "Download as one file", href=f"{view.path()}/report.html", class_="button", download=True)
    return tag("div", copy_button("Copy link"), markdown, file, _commands(view, run), compare, class_="actions")


def _commands(view: JobView, run: str) -> Html:
    """The same for a terminal."""
    url = view.request.url
    site = f"{url.scheme}://{url.netloc}"
    session = shlex.quote(f"{site}{session_path(view.session).rstrip('/')}")
    lines = [
        f"raykeeper report {shlex.quote(run)} --server {shlex.quote(site)}",
        f"raykeeper logs {shlex.quote(run)} --server {shlex.quote(site)}",
    ]
    if view.overview.job.job_id:
        lines.append(f"ray list tasks --address {session} --filter job_id={shlex.quote(view.overview.job.job_id)}")
    lines.append(f"ray job logs {shlex.quote(view.job)} --address {session}")
    shown = tag("pre", "\n".join(lines), tabindex="0")
    return tag("details", tag("summary", "Command line"), shown, class_="commands")


async def _why(view: JobView) -> Html:
    report = view.report
    if report.headline is None and not report.groups:
        words = "Nothing is recorded that could have failed." if report.is_blank else "Nothing failed."
        return join([nothing(words), why_body(report)])
    return why_body(report, await _seen(view))


async def _seen(view: JobView) -> Html:
    """Where the same failure was before, as far as that is found out quickly."""
    headline = view.report.headline
    if headline is None or not headline.fingerprint:
        return EMPTY
    try:
        async with asyncio.timeout(_SEEN_SECONDS):
            found = await jobs_with_failure(view.history, view.session.namespace, headline.fingerprint)
    except TimeoutError:
        return EMPTY
    others = [one for one in found if (one.entry.id, one.job.name) != (view.session, view.job)]
    return seen_before(others, headline.fingerprint)


async def _timeline(view: JobView) -> Html:
    tab = await timeline_tab(view.request, view.context, view.job)
    return join([timeline_section(tab), timeline_picture(view.overview.timeline)])


async def _logs(view: JobView) -> Html | Response:
    return await logs_tab(view.request, view.context, view.job, view.path("logs"))


async def _tasks(view: JobView) -> Html:
    params = view.request.query_params
    wanted = _attempts_request(params)
    task_id = params.get("task", "")[:_WORDS_CHARS]
    job_id = view.overview.job.job_id or ""
    attempts, task = await asyncio.gather(
        attempts_of_job(view.context, job_id, wanted), attempts_of_task(view.context, task_id)
    )
    return tasks_tab(view.overview, view.session, attempts, wanted, task, task_id)


def _attempts_request(params: Mapping[str, str]) -> AttemptsRequest:
    start = params.get("start", "0")
    if not (start.isascii() and start.isdecimal() and int(start[:12]) <= _LAST_START):
        raise InvalidQuery("start must be a number")
    return AttemptsRequest(params.get("state", "")[:_WORDS_CHARS], params.get("name", "")[:_WORDS_CHARS], int(start))


async def _actors(view: JobView) -> Html:
    actors = await actors_of_job(view.context, view.overview.job.job_id or "")
    return actors_tab(actors, view.session, view.job)


async def _resources(view: JobView) -> Html:
    nodes, curves, usage = await asyncio.gather(
        nodes_of(view.context, view.overview.job.job_id or ""),
        curves_of_job(view.context, view.job, CurvesQuery(points=POINTS)),
        usage_of_job(view.context, view.job, view.history),
    )
    return resources_tab(curves, usage, nodes, view.session)


async def _environment(view: JobView) -> Html:
    return environment_tab(view.overview)


@dataclass(frozen=True)
class _Tab:
    label: Callable[[JobView], str]
    body: Callable[[JobView], Awaitable[Html | Response]]
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


def _actors_label(view: JobView) -> str:
    timeline = view.overview.timeline
    number = sum(lane.group == "actors" for lane in timeline.lanes) + timeline.left_out.get("actors", 0)
    return f"Actors {number:,}"


_TABS: dict[JobTab, _Tab] = {
    "": _Tab(lambda view: "Result" if view.report.outcome.is_well else "Why it failed", _why),
    "timeline": _Tab(lambda _: "Timeline", _timeline, TIMELINE_STYLES, TIMELINE_SCRIPTS),
    "logs": _Tab(lambda _: "Logs", _logs, LOG_STYLES, LOG_SCRIPTS),
    "tasks": _Tab(lambda view: f"Tasks {view.overview.counts.attempts:,}", _tasks),
    "actors": _Tab(_actors_label, _actors),
    "resources": _Tab(lambda _: "Resources", _resources),
    "environment": _Tab(lambda _: "Environment", _environment),
}
