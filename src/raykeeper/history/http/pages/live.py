"""The pages about what exists in Kubernetes now: the list of Ray's objects, and one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from raykeeper.history.http.keeper_api.live import (
    HistoryLinks,
    ListedObject,
    LiveAnswer,
    LiveDetailAnswer,
    LiveQuery,
    find_live_object,
    find_live_objects,
)
from raykeeper.history.http.pages.forms import (
    Given,
    choice,
    filter_form,
    given_parameters,
    link_with,
    page_query,
    text_field,
)
from raykeeper.history.http.pages.frame import Crumb, page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import (
    Tone,
    ago,
    badge,
    facts,
    link,
    moment,
    next_steps,
    note,
    nothing,
    pager,
    quiet,
    table,
)
from raykeeper.history.live_objects.model import (
    KINDS,
    STATES,
    LiveDetail,
    LiveEvent,
    LiveObject,
    LivePod,
    LiveProblem,
    LiveState,
)
from raykeeper.history.query.history import History
from raykeeper.history.text import shortened
from raykeeper.history.urls import LIVE_PATH, live_path

_TONES: Final[dict[LiveState, Tone]] = {
    "ready": "good",
    "starting": "busy",
    "running": "busy",
    "succeeded": "good",
    "failed": "bad",
    "invalid": "bad",
    "suspended": "quiet",
    "scheduled": "quiet",
    "ending": "warn",
    "unknown": "warn",
}
_HEADERS = ("State", "Object", "Details", "History", "Age")
_POD_HEADERS = ("Pod", "Phase", "Details", "Restarts", "Node", "Age")
_EVENT_HEADERS = ("Reason", "About", "Message", "Times", "Last")
_RIGHTS = (
    ("In the chart ray-history-server", "liveObjects.enabled=true and rbacEnable=true"),
    (
        "Or by hand, for the server's ServiceAccount",
        "get, list on rayclusters, rayjobs, rayservices, raycronjobs (ray.io)",
    ),
    ("And for pods and Events of an object", "list on pods, events"),
)
_CONNECTING = (
    ("In Kubernetes, with the chart ray-history-server", "liveObjects.enabled=true"),
    ("Elsewhere", "raykeeper history --live-objects=on --kubeconfig=~/.kube/config"),
)
_NONE_YET = (("Make one from our examples", "kubectl apply -f examples/raycluster-with-history.yaml"),)


async def list_live_objects(request: Request, history: History) -> Response:
    given = given_parameters(request.query_params.multi_items(), LiveQuery)
    query = page_query(given, LiveQuery)
    found = await find_live_objects(history, query)
    return _list_page(found, query, given, history.clock.now())


def _list_page(found: LiveAnswer, query: LiveQuery, given: Given, now: datetime) -> HTMLResponse:
    body = [
        filter_form(LIVE_PATH, "Filter objects", _fields(given, found), given),
        _problems(found.problems),
        _objects([*found.objects], now) if found.objects else _empty(found, given),
        _pager(found, query, given),
        _freshness(found.as_of, is_complete=found.is_complete),
    ]
    return page_response("Live", join(body), section="live")


def _fields(given: Given, found: LiveAnswer) -> tuple[Html, ...]:
    counts: dict[str, str] = {kind: f"{kind} ({found.counts.get(kind, 0):,})" for kind in KINDS}
    return (
        text_field("Words in names", "text", given, "search"),
        choice("Kind", "kind", given, {"": "any", **counts}),
        text_field("Namespace", "namespace", given, options=found.namespaces),
        choice("State", "state", given, {"": "any", **{state: state for state in STATES}}),
    )


def _empty(found: LiveAnswer, given: Given) -> Html:
    """In the place of the list: why there is nothing in it, and what would bring it."""
    causes = {problem.cause for problem in found.problems}
    if "off" in causes:
        return next_steps("Live objects are not shown: this server is not connected to Kubernetes.", _CONNECTING)
    if "forbidden" in causes and not found.counts:
        missing = [
            (f"{one.verb} {one.resource}", f"in {one.namespace or 'all namespaces'}")
            for one in found.problems
            if one.cause == "forbidden"
        ]
        return next_steps("Nothing can be shown: rights in Kubernetes are missing.", (*missing, *_RIGHTS))
    if given:
        return nothing("There is no such object.")
    if causes - {"not installed"}:
        return nothing("Nothing could be read.")
    return next_steps("There is no RayCluster, RayJob, RayService or RayCronJob now.", _NONE_YET)


def _problems(problems: Sequence[LiveProblem]) -> Html:
    """What could not be read; that a kind is not installed is no news to anybody."""
    told = [one.words for one in problems if one.cause in ("forbidden", "unavailable")]
    return note(f"{'. '.join(dict.fromkeys(told))}.") if told else EMPTY


def _freshness(as_of: datetime, *, is_complete: bool) -> Html:
    short = "" if is_complete else " Not everything that exists could be read."
    return tag("p", quiet("As of "), moment(as_of), quiet(f".{short}"))


def _pager(found: LiveAnswer, query: LiveQuery, given: Given) -> Html:
    end = query.offset + query.limit
    first = link_with(LIVE_PATH, given, offset="") if query.offset else None
    following = link_with(LIVE_PATH, given, offset=str(end)) if end < found.found else None
    return pager(first=first, following=following)


def _objects(objects: Sequence[ListedObject], now: datetime) -> Html:
    heads = (tag("th", words, scope="col", class_="number" if words == "Age" else None) for words in _HEADERS)
    whole = tag(
        "table",
        tag("caption", "Objects", class_="unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *(_object_row(one, now) for one in objects)),
    )
    return tag("div", whole, class_="wide list", role="region", aria_label="Objects", tabindex="0")


def _object_row(one: ListedObject, now: datetime) -> Html:
    about = one.object
    owner = f"{about.owner_kind} {about.owner_name}".strip()
    told = " · ".join(words for words in (about.kind, about.namespace, owner and f"of {owner}") if words)
    return tag(
        "tr",
        tag("td", _state(about), class_="outcome"),
        tag("th", link(about.name, one.path), tag("span", told, class_="below"), scope="row", class_="what"),
        tag("td", shortened(about.words), class_="why"),
        tag("td", _ways(one.history), class_="tasks"),
        tag("td", ago(about.created_at, now), class_="number when"),
    )


def _state(about: LiveObject) -> Html:
    return badge(about.state, _TONES[about.state])


def _ways(history: HistoryLinks) -> Html:
    ways = (("Session", history.session), ("Job", history.job), ("Report", history.report))
    return join((link(words, href) for words, href in ways if href), " · ")


async def get_live_object(request: Request, history: History) -> Response:
    names = request.path_params
    found = await find_live_object(history, names["kind"], names["namespace"], names["name"])
    crumbs = (
        Crumb("Live", LIVE_PATH),
        Crumb(names["namespace"], link_with(LIVE_PATH, {}, namespace=names["namespace"])),
    )
    if isinstance(found, LiveProblem):
        steps = _CONNECTING if found.cause == "off" else _RIGHTS
        return page_response(names["name"], next_steps(f"{found.words}.", steps), 503, section="live", crumbs=crumbs)
    body = _detail(found, history.clock.now())
    return page_response(found.detail.object.name, body, section="live", crumbs=crumbs)


def _detail(found: LiveDetailAnswer, now: datetime) -> Html:
    detail, about = found.detail, found.detail.object
    return join(
        [
            _problems(detail.problems),
            _facts(about, found.history, now),
            _conditions(about),
            _jobs(detail, now),
            _pods(detail, now) if about.kind != "RayCronJob" else EMPTY,
            _events(detail, now),
            _freshness(detail.as_of, is_complete=detail.is_complete),
        ]
    )


def _facts(about: LiveObject, history: HistoryLinks, now: datetime) -> Html:
    owner = about.owner_name
    is_ours = about.owner_kind in KINDS
    owned = link(f"{about.owner_kind} {owner}", live_path(about.owner_kind, about.namespace, owner)) if is_ours else ""
    clusters = [name for name in about.clusters if (about.kind, about.name) != ("RayCluster", name)]
    return facts(
        [
            ("State", _state(about)),
            ("Kind", about.kind),
            ("Namespace", about.namespace),
            ("Status", about.status),
            ("Details", about.words),
            ("Created", ago(about.created_at, now)),
            ("Owner", owned or f"{about.owner_kind} {owner}".strip()),
            (
                "Clusters",
                join((link(name, live_path("RayCluster", about.namespace, name)) for name in clusters), " · "),
            ),
            ("History", _ways(history) or "nothing was stored of it yet"),
            ("UID", about.uid),
        ]
    )


def _conditions(about: LiveObject) -> Html:
    heading = tag("h2", "Conditions")
    if not about.conditions:
        return join([heading, nothing("No operator has written conditions for it yet.")])
    rows = [
        (
            join([badge(one.words, one.tone), tag("span", f"{one.type} = {one.status}", class_="quiet below")], " "),
            one.reason,
            one.message,
            moment(one.since),
        )
        for one in about.conditions
    ]
    return join([heading, table("Conditions", ("Condition", "Reason", "Message", "Since"), rows, hides_caption=True)])


def _jobs(detail: LiveDetail, now: datetime) -> Html:
    if detail.object.kind != "RayCronJob":
        return EMPTY
    heading = tag("h2", "RayJobs")
    if not detail.jobs:
        return join([heading, nothing("It has no RayJobs now.")])
    rows = [
        (link(one.name, live_path(one.kind, one.namespace, one.name)), _state(one), one.words, ago(one.created_at, now))
        for one in detail.jobs
    ]
    return join([heading, table("RayJobs", ("RayJob", "State", "Details", "Age"), rows, hides_caption=True)])


def _pods(detail: LiveDetail, now: datetime) -> Html:
    heading = tag("h2", "Pods")
    if not detail.pods:
        said = "It is suspended and has no pods." if detail.object.state == "suspended" else "It has no pods now."
        return join([heading, nothing(said)])
    rows = [_pod_row(pod, now) for pod in detail.pods]
    return join([heading, table("Pods", _POD_HEADERS, rows, name="pods", hides_caption=True, numbers=("Restarts",))])


def _pod_row(pod: LivePod, now: datetime) -> tuple[str, ...]:
    tone: Tone = "good" if pod.is_well else "bad" if pod.phase == "Failed" or pod.restarts else "busy"
    role = pod.role if pod.role == "head" else f"{pod.role} {pod.group}".strip()
    return (
        join([pod.name, " ", quiet(role)]),
        badge(pod.phase or "Unknown", tone),
        pod.words or "It runs" if pod.phase == "Running" else pod.words,
        join([f"{pod.restarts:,}", *_last_ends(pod)]),
        pod.node,
        ago(pod.created_at, now),
    )


def _last_ends(pod: LivePod) -> Iterator[Html]:
    ends = dict.fromkeys(one.last_reason for one in pod.containers if one.last_reason)
    if ends:
        yield join([" ", quiet(f"last: {', '.join(ends)}")])


def _events(detail: LiveDetail, now: datetime) -> Html:
    heading = tag("h2", "Events")
    if not detail.events:
        return join([heading, nothing("Kubernetes has no Events about it; it forgets them after an hour.")])
    rows = [_event_row(event, now) for event in detail.events]
    return join([heading, table("Events", _EVENT_HEADERS, rows, name="events", hides_caption=True, numbers=("Times",))])


def _event_row(event: LiveEvent, now: datetime) -> tuple[str, ...]:
    return (
        badge(event.reason or event.type, "warn" if event.type == "Warning" else "quiet"),
        f"{event.about_kind} {event.about_name}",
        event.message,
        f"{event.count:,}",
        ago(event.at, now),
    )
