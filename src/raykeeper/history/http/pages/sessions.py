"""The list of sessions, the clusters that never started, and the ways into a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from raykeeper.errors import RaykeeperError
from raykeeper.history.http.keeper_api.clusters import report_of_unstarted
from raykeeper.history.http.keeper_api.rayjobs import ListedRayJob, listed_rayjob
from raykeeper.history.http.keeper_api.sessions import ListedSession, SessionsQuery, find_sessions, listed_session
from raykeeper.history.http.pages.forms import (
    Given,
    choice,
    filter_form,
    given_parameters,
    link_with,
    page_query,
    text_field,
)
from raykeeper.history.http.pages.frame import Crumb, message_response, page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.report import REPORT_STYLES, report_body
from raykeeper.history.http.pages.widgets import (
    ago,
    badge,
    duration,
    facts,
    link,
    moment,
    next_steps,
    note,
    nothing,
    outcome_badge,
    pager,
    quiet,
    state_badge,
    table,
)
from raykeeper.history.http.routing import session_of_path
from raykeeper.history.query.history import History
from raykeeper.history.report.unstarted import report_on_rayjob, session_of_rayjob
from raykeeper.history.store.session_list import SessionRows
from raykeeper.history.store.session_state import State
from raykeeper.history.store.unstarted import Unstarted, UnstartedCluster
from raykeeper.history.store.unstarted_rayjobs import RayJobsWithoutCluster
from raykeeper.history.urls import cluster_path, job_path, overview_path, report_path, session_path
from raykeeper.layout.keys import SessionId

T = TypeVar("T")

TITLE = "Never started"
_MOST_ROWS = 5
_CLUSTER_HEADERS = ("Cluster", "Namespace", "First seen")
_RAYJOB_HEADERS = ("RayJob", "Namespace", "Created", "Why")


async def get_cluster_page(request: Request, history: History) -> Response:
    """Why the cluster never got a session; if it did get one since, the way to its report."""
    namespace, cluster = request.path_params["namespace"], request.path_params["cluster"]
    if session := await history.catalog.newest_of_cluster(namespace, cluster):
        return RedirectResponse(report_path(session), 302)
    report = await report_of_unstarted(history, namespace, cluster)
    return page_response(
        f"Cluster {cluster}",
        report_body(report),
        section="sessions",
        crumbs=(Crumb("Sessions", SESSIONS_PATH),),
        styles=REPORT_STYLES,
    )


async def get_rayjob_page(request: Request, history: History) -> Response:
    """The way to the job of a RayJob's last attempt; where it never got as far, why."""
    namespace, rayjob = request.path_params["namespace"], request.path_params["rayjob"]
    found = await session_of_rayjob(history, namespace, rayjob)
    if isinstance(found, SessionId):
        return RedirectResponse(job_path(found, rayjob), 302)
    report = await report_on_rayjob(history.catalog.store, found)
    links = join((link(name, cluster_path(namespace, name)) for name in reversed(found.clusters)), " · ")
    body = join([report_body(report), facts([("Its clusters", links)]) if found.clusters else EMPTY])
    return page_response(f"RayJob {rayjob}", body, section="jobs", crumbs=(Crumb("Jobs", "/"),), styles=REPORT_STYLES)


def _unstarted_section(clusters: Unstarted, rayjobs: RayJobsWithoutCluster) -> Html:
    """The newest of them; nothing where there are none."""
    if not clusters.found and not rayjobs.newest:
        return EMPTY
    return tag("section", tag("h2", TITLE), _unstarted_clusters(clusters), _unstarted_rayjobs(rayjobs))


def _unstarted_clusters(known: Unstarted) -> Html:
    if not known.found:
        return EMPTY
    shown = known.found[:_MOST_ROWS]
    return join(
        [
            tag("p", "Kubernetes told of these clusters, and nothing was ever heard of their heads."),
            table("Clusters", _CLUSTER_HEADERS, map(_cluster_row, shown), hides_caption=True),
            _count(len(shown), len(known.found)),
        ]
    )


def _unstarted_rayjobs(known: RayJobsWithoutCluster) -> Html:
    if not known.newest:
        return EMPTY
    shown = [listed_rayjob(record) for record in known.newest[:_MOST_ROWS]]
    return join(
        [
            tag("p", "These RayJobs never had a cluster."),
            table("RayJobs", _RAYJOB_HEADERS, map(_rayjob_row, shown), hides_caption=True),
            _count(len(shown), known.count),
        ]
    )


def _count(shown: int, found: int) -> Html:
    return tag("p", quiet(f"The newest of {found:,}.")) if found > shown else EMPTY


def _rayjob_row(one: ListedRayJob) -> tuple[str, ...]:
    return link(one.rayjob, one.path), one.namespace, moment(one.created_at), one.cause or one.state


def _cluster_row(one: UnstartedCluster) -> tuple[str, ...]:
    return link(one.cluster, cluster_path(one.namespace, one.cluster)), one.namespace, moment(one.first_at)


SESSIONS_PATH = "/sessions"
OPEN_NOTE = (
    "Whoever reaches this address can read the history of every namespace. Set --auth=token to ask who they are, "
    "or --auth=none to say that this is meant."
)
_FIRST_STEPS = (
    ("Try it on this machine, without Kubernetes", "raykeeper demo"),
    ("Import the sessions of a Ray that ran here", "raykeeper import --help"),
    ("On Kubernetes, add the collector to your Ray pods (docs/collector.md)", "raykeeper collector --help"),
)
_SESSION_HEADERS = ("Outcome", "Cluster", "Why", "Jobs", "Lasted", "Started")
_STATES = {"": "any", "running": "running", "ended": "ended", "crashed": "crashed", "unknown": "unknown"}
_ORDERS = {"newest": "newest", "oldest": "oldest"}


def first_steps(words: str) -> Html:
    """In the place of an empty list: how to fill it."""
    return next_steps(words, _FIRST_STEPS)


async def list_sessions(request: Request, history: History) -> Response:
    given = given_parameters(request.query_params.multi_items(), SessionsQuery)
    query = page_query(given, SessionsQuery)
    found, unstarted = await asyncio.gather(
        find_sessions(history, query), _nothing_more() if given else unstarted_section(history)
    )
    return _sessions_page(found, given, unstarted, history.clock.now(), is_undecided=history.access.is_undecided)


async def _nothing_more() -> Html:
    return EMPTY


def _sessions_page(
    found: SessionRows, given: Given, unstarted: Html, now: datetime, *, is_undecided: bool
) -> HTMLResponse:
    """`unstarted` tells of clusters that have no session, and of RayJobs that have no cluster."""
    notes = [OPEN_NOTE] if is_undecided else []
    if found.unreadable:
        notes.append(f"{found.unreadable} of the catalog's entries could not be read and are missing here.")
    body = [
        *map(note, notes),
        filter_form(SESSIONS_PATH, "Filter sessions", _fields(given, found), given),
        _table([listed_session(row) for row in found.rows], now)
        if found.rows
        else _nothing(given, is_cut=found.is_cut),
        _cut(found),
        _pager(found, given),
        unstarted,
    ]
    return page_response("Sessions", join(body), section="sessions")


def _fields(given: Given, found: SessionRows) -> tuple[Html, ...]:
    """One row; what is asked for more rarely is behind a fold, open if it is in use."""
    starts = [row.entry.start for row in found.rows]
    seldom = (
        text_field("Owner", "owner", given),
        text_field("Started from", "since", given, "date"),
        text_field("Started until", "until", given, "date"),
        choice("First", "order", given, _ORDERS),
    )
    is_used = any(name in given for name in ("owner", "since", "until", "order"))
    return (
        text_field("Words in names", "text", given, "search"),
        text_field("Namespace", "namespace", given, options=sorted({start.namespace for start in starts})),
        text_field("Cluster", "cluster", given, options=sorted({start.cluster for start in starts})),
        choice("State", "state", given, _STATES),
        tag("details", tag("summary", "More"), *seldom, open=is_used),
    )


def _nothing(given: Given, *, is_cut: bool) -> Html:
    if is_cut:
        return nothing("None so far.")
    if "after" in given:
        return nothing("There are no more sessions.")
    if given:
        return nothing("There is no such session.")
    return first_steps(
        "There are no sessions yet. They appear here within seconds of the start of a Ray cluster that has a collector."
    )


def _cut(found: SessionRows) -> Html:
    """That the list goes on, although it seems to end."""
    if not found.is_cut or found.next_place is None:
        return EMPTY
    return tag(
        "p", "Few sessions are like that. Looked through those back to ", moment(found.next_place.started_at), "."
    )


def _pager(found: SessionRows, given: Given) -> Html:
    following = link_with(SESSIONS_PATH, given, after=str(found.next_place)) if found.next_place else None
    first = link_with(SESSIONS_PATH, given, after="") if "after" in given else None
    words = ("Oldest", "Newer") if given.get("order") == "oldest" else ("Newest", "Older")
    return pager(first=first, following=following, words=words)


def _table(sessions: Sequence[ListedSession], now: datetime) -> Html:
    numbers = _SESSION_HEADERS[3:]
    heads = (tag("th", words, scope="col", class_="number" if words in numbers else None) for words in _SESSION_HEADERS)
    rows = (_session_row(one, now) for one in sessions)
    whole = tag(
        "table",
        tag("caption", "Sessions", class_="unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
    )
    return tag("div", whole, class_="wide list", role="region", aria_label="Sessions", tabindex="0")


def _session_row(one: ListedSession, now: datetime) -> Html:
    session = SessionId(one.namespace, one.cluster, one.session)
    ran = (one.ended_at or (now if one.state is State.RUNNING else None), one.started_at)
    failed = quiet(f"{one.failed_jobs:,} failed") if one.failed_jobs else EMPTY
    jobs = join([f"{one.jobs:,} " if one.jobs is not None else "", failed])
    return tag(
        "tr",
        tag("td", _outcome(one), class_="outcome"),
        tag("th", _names(one, session), scope="row", class_="what"),
        tag("td", _why(one, session), class_="why"),
        tag("td", jobs, class_="number tasks"),
        tag("td", duration(ran[0] - ran[1] if ran[0] else None), class_="number ran"),
        tag("td", ago(one.started_at, now), class_="number when"),
    )


def _outcome(one: ListedSession) -> Html:
    """How it went, and that its cluster crashed. A state says no more than that it is over."""
    if one.is_doubtful or one.state is State.UNKNOWN:
        return state_badge(one.state, is_doubtful=one.is_doubtful)
    crashed = [" ", state_badge(one.state)] if one.state is State.CRASHED else []
    held = [" ", badge("held")] if one.is_held else []
    return join([outcome_badge(one.outcome), *crashed, *held])


def _names(one: ListedSession, session: SessionId) -> Html:
    owner = f"{one.owner_kind} {one.owner_name}".strip()
    told = " · ".join(words for words in (one.namespace, owner, one.ray_version and f"Ray {one.ray_version}") if words)
    below = [tag("span", words, class_="below") for words in (told, one.session)]
    return join([link(one.cluster, overview_path(session)), *below])


def _why(one: ListedSession, session: SessionId) -> Html:
    ways = join([link("Report", report_path(session)), " · ", link("Ray dashboard", session_path(session))])
    if one.headline is None:
        return tag("span", ways, class_="below")
    aside = " · ".join(part for part in (one.headline.what, one.headline.where) if part)
    return join([link(one.headline.text, report_path(session)), " ", quiet(aside), tag("span", ways, class_="below")])


_UNSTARTED_SECONDS = 0.02  # of the 100 ms that a list of 10,000 sessions may take


async def unstarted_section(history: History) -> Html:
    """What never started, as far as it is known by now."""
    catalog = history.catalog
    clusters, rayjobs = await asyncio.gather(
        _by_now(catalog.unstarted.known_within, Unstarted()),
        _by_now(catalog.unstarted_rayjobs.known_within, RayJobsWithoutCluster()),
    )
    return _unstarted_section(clusters, rayjobs)


async def _by_now(known_within: Callable[[float], Awaitable[T]], unknown: T) -> T:
    """What is known by now: the list of sessions does not wait for it, nor fail with it."""
    try:
        return await known_within(_UNSTARTED_SECONDS)
    except RaykeeperError:
        return unknown


async def redirect_to_latest(request: Request, history: History) -> Response:
    namespace, cluster = request.path_params["namespace"], request.path_params["cluster"]
    latest = await history.catalog.newest_of_cluster(namespace, cluster)
    if latest is None:
        return message_response("No session", f"Cluster {namespace}/{cluster} has no session.", 404)
    rest = quote(request.path_params.get("rest", ""))
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{session_path(latest)}{rest}{query}", 302)


async def add_slash(request: Request, _: History) -> Response:
    """Everything in Ray's pages is relative to a path that ends in a slash."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{session_path(session_of_path(request))}{query}", 307)
