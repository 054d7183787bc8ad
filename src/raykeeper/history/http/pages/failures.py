"""The pages of all kinds of failure and of one of them, and what people say about one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.failures.index import KnownFailures, failures_within
from raykeeper.history.failures.kinds import DAYS, FailureState
from raykeeper.history.failures.notes import may_write, read_note, write_note
from raykeeper.history.http.keeper_api.failures import (
    FailureAnswer,
    FailuresAnswer,
    FailuresQuery,
    ListedFailure,
    ListedNote,
    ListedRun,
    failure_answer,
    failures_answer,
    listed_note,
)
from raykeeper.history.http.pages.forms import (
    Given,
    chips,
    filter_form,
    given_parameters,
    link_with,
    page_query,
    text_field,
)
from raykeeper.history.http.pages.frame import Crumb, message_response, page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import (
    Tone,
    ago,
    badge,
    facts,
    link,
    note,
    nothing,
    pager,
    quiet,
    table,
)
from raykeeper.history.http.requests import is_of_other_site, short_body
from raykeeper.history.query.history import History
from raykeeper.history.settings import AccessSettings
from raykeeper.history.text import counted
from raykeeper.history.urls import failure_path, job_path, overview_path
from raykeeper.layout.failure_notes import NOTE_CHARS
from raykeeper.layout.keys import SessionId

FAILURES_PATH = "/failures"
_LIST_SECONDS = 0.2  # of the 300 ms that the page may take; a longer look is shown by the next request
_ONE_SECONDS = 5.0
_ACCESS_SECONDS = 1.0
_REFRESH_SECONDS = "2"
_CHIPS = {"": "All", "new": "New", "regressed": "Regressed", "ongoing": "Ongoing", "gone": "Gone", "muted": "Muted"}
_STATES: dict[FailureState, tuple[Tone, str]] = {
    FailureState.NEW: ("busy", "First seen in the last 24 hours"),
    FailureState.REGRESSED: ("bad", "It was gone, and came back in the last week"),
    FailureState.ONGOING: ("warn", "The last run of a script that had it has it still"),
    FailureState.GONE: ("good", "The last run of every script that had it went without it"),
}
_SPARK_WIDTH, _SPARK_HEIGHT, _LEAST_BAR = 120, 24, 3
_OPEN = "Notes are off: anybody who reaches this server could write them. Start it with --auth=token to have them."
_READ_ONLY = "Notes are off: this server may only read its store, or the store does not answer."


async def list_failure_kinds(request: Request, history: History) -> Response:
    given = given_parameters(request.query_params.multi_items(), FailuresQuery)
    query = page_query(given, FailuresQuery)
    known = await failures_within(history, _LIST_SECONDS)
    answer = failures_answer(known, query)
    body = [
        chips("Which failures", FAILURES_PATH, given, "state", _CHIPS),
        _filters(given, answer),
        *(note(words, "busy") for words in _notes(known)),
        _table(answer.failures, history.clock.now()) if answer.failures else _nothing(known, given),
        _pager(answer, query, given),
    ]
    response = page_response("Failures", join(body), section="failures")
    if not known.is_known:
        response.headers["Refresh"] = _REFRESH_SECONDS
    return response


def _filters(given: Given, answer: FailuresAnswer) -> Html:
    names = {tuple(name.split("/", 1)) for one in answer.failures for name in one.clusters}
    fields = (
        text_field("Words", "text", given, "search", placeholder="error, place, note …"),
        text_field("Namespace", "namespace", given, options=sorted({name[0] for name in names})),
        text_field("Cluster", "cluster", given, options=sorted({name[-1] for name in names})),
    )
    return filter_form(FAILURES_PATH, "Filter failures", fields, given, keeps=("state",))


def _notes(known: KnownFailures) -> Iterator[str]:
    if not known.is_known:
        yield "The sessions are being looked through for the first time. This page comes by itself."
    elif known.unread:
        yield f"{counted(known.unread, 'session')} not counted here: they run, or nobody has opened them yet."
    if not known.is_complete:
        yield f"The {known.sessions + known.unread:,} newest sessions were looked through; older ones are not counted."
    if known.left_out:
        yield f"{counted(known.left_out, 'kind')} not seen for the longest time are not listed."


def _nothing(known: KnownFailures, given: Given) -> Html:
    if not known.is_known:
        return nothing("Nothing is known yet.")
    if given:
        return nothing("There is no such failure.")
    return nothing(
        f"Nothing failed in {counted(known.sessions, 'session')}. What fails appears here once its session is over."
    )


def _pager(answer: FailuresAnswer, query: FailuresQuery, given: Given) -> Html:
    after = query.start + query.limit
    following = link_with(FAILURES_PATH, given, start=str(after)) if after < answer.found else None
    first = link_with(FAILURES_PATH, given, start="") if query.start else None
    return pager(first=first, following=following, words=("First", "More"))


def _table(kinds: Sequence[ListedFailure], now: datetime) -> Html:
    heads = [tag("th", words, scope="col") for words in ("State", "Failure", f"Last {DAYS} days")]
    heads += [tag("th", words, scope="col", class_="number") for words in ("Runs", "First seen", "Last seen")]
    rows = (_row(kind, now) for kind in kinds)
    shown = tag(
        "table", tag("caption", "Failures", class_="unseen"), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    )
    return tag("div", shown, class_="wide list failures", role="region", aria_label="Failures", tabindex="0")


def _row(kind: ListedFailure, now: datetime) -> Html:
    where = counted(kind.cluster_count, "cluster") if kind.cluster_count > 1 else kind.clusters[0]
    return tag(
        "tr",
        tag("td", _state(kind), class_="outcome"),
        tag("th", _title(kind), scope="row", class_="what"),
        tag("td", _sparkline(kind.days), class_="tasks"),
        tag("td", counted(kind.runs, "run"), tag("span", where, class_="below"), class_="number ran"),
        tag("td", ago(kind.first_at, now), class_="number first"),
        tag("td", ago(kind.last_at, now), class_="number when"),
    )


def _state(kind: ListedFailure) -> Html:
    tone, why = _STATES[kind.state]
    muted = [" ", badge("muted")] if kind.note and kind.note.is_muted else []
    return join([tag("span", kind.state.value, title=why, class_=f"badge {tone}"), *muted])


def _title(kind: ListedFailure) -> Html:
    about = " · ".join(part for part in (kind.what, kind.where, _cause(kind.rule)) if part)
    healed = " · recovered by retries" if kind.is_recovered else ""
    said = tag("span", kind.note.text, class_="below said") if kind.note and kind.note.text else EMPTY
    ways = tag("span", about, healed, " · ", link("latest report", kind.latest.report), class_="below")
    return join([tag("a", kind.title, href=kind.path), ways, said])


def _cause(rule: str) -> str:
    """A rule's name as words."""
    return rule.replace("_", " ")


def _sparkline(days: Sequence[int]) -> Html:
    """A bar for each day; a day with a single run is seen beside one with a thousand."""
    most, width = max(days) or 1, _SPARK_WIDTH / len(days)
    bars = (
        f"M{place * width:.1f} {_SPARK_HEIGHT}v-{_height(number, most):.1f}h{width - 1.5:.1f}V{_SPARK_HEIGHT}z"
        for place, number in enumerate(days)
        if number
    )
    ground = tag("path", d=f"M0 {_SPARK_HEIGHT - 1}h{_SPARK_WIDTH}v1H0z", class_="quiet")
    shown = tag("path", d="".join(bars), class_="bad")
    label = f"Runs that had it in the last {len(days)} days: {sum(days):,}, today {days[-1]:,}"
    box = f"0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"
    return tag("svg", ground, shown, class_="spark", viewBox=box, role="img", aria_label=label)


def _height(number: int, most: int) -> float:
    return max(_LEAST_BAR, _SPARK_HEIGHT * number / most)


async def get_failure_kind(request: Request, history: History) -> Response:
    """One kind of failure. What was said last is read anew, because whoever said it comes here next."""
    fingerprint = request.path_params["fingerprint"]
    answer = failure_answer(await failures_within(history, _ONE_SECONDS), fingerprint)
    said = listed_note(await read_note(history, fingerprint))
    why_off = await _why_no_notes(history)
    now = history.clock.now()
    body = [
        _facts(answer.failure, now),
        tag("section", tag("h2", "Note"), _note_form(answer.failure, said, why_off, now), class_="card"),
        tag("h2", "Latest runs"),
        _runs(answer, now),
    ]
    crumbs = (Crumb("Failures", FAILURES_PATH),)
    return page_response(answer.failure.title, join(body), section="failures", crumbs=crumbs)


def _facts(kind: ListedFailure, now: datetime) -> Html:
    clusters = ", ".join(kind.clusters[:10]) + (" …" if kind.cluster_count > 10 else "")
    shown = facts(
        [
            ("State", _state(kind)),
            ("Kind of cause", _cause(kind.rule)),
            ("Where", " · ".join(part for part in (kind.what, kind.where) if part)),
            ("First seen", ago(kind.first_at, now)),
            ("Last seen", ago(kind.last_at, now)),
            ("Runs", f"{kind.runs:,}, {counted(kind.count, 'failure')}"),
            ("Clusters", clusters),
            (f"Last {DAYS} days", _sparkline(kind.days)),
            ("Report", link("Latest report", kind.latest.report)),
        ]
    )
    return tag("section", shown, class_="card")


def _runs(answer: FailureAnswer, now: datetime) -> Html:
    rows = [_run_row(run, now) for run in answer.runs]
    more = answer.failure.runs - len(rows)
    rest = tag("p", quiet(f"{counted(more, 'earlier run')} not listed.")) if more > 0 else EMPTY
    return join([table("Latest runs", ("Job", "Cluster", "Started", "Report"), rows, hides_caption=True), rest])


def _run_row(run: ListedRun, now: datetime) -> tuple[str, ...]:
    session = SessionId(run.namespace, run.cluster, run.session)
    name = link(run.job, job_path(session, run.job)) if run.job else quiet("outside of any job")
    cluster = link(f"{run.namespace}/{run.cluster}", overview_path(session))
    return name, cluster, ago(run.started_at, now), link("Report", run.report)


def _note_form(kind: ListedFailure, said: ListedNote | None, why_off: str, now: datetime) -> Html:
    """What is said, and where it may be changed, the form for it."""
    last = tag("p", quiet("Last changed "), ago(said.at, now)) if said else EMPTY
    if why_off:
        text = tag("p", said.text) if said and said.text else EMPTY
        muted = tag("p", badge("muted")) if said and said.is_muted else EMPTY
        return join([text, muted, last, tag("p", quiet(why_off))])
    words = tag("textarea", said.text if said else "", name="text", rows="3", maxlength=NOTE_CHARS)
    box = tag("input", type="checkbox", name="muted", value="true", checked=bool(said and said.is_muted))
    form = tag(
        "form",
        tag("label", "What is known about it, for everybody who comes here", words),
        tag("label", box, " Mute: leave it out of the list of failures", class_="check"),
        tag("button", "Save", type="submit", class_="main"),
        action=f"{failure_path(kind.fingerprint)}/note",
        method="post",
        class_="note-form",
    )
    return join([form, last])


async def post_failure_note(request: Request, history: History) -> Response:
    """Store what was said. A page of another site cannot have its visitors say something."""
    fingerprint = request.path_params["fingerprint"]
    if is_of_other_site(request):
        return message_response("Not allowed", "A page of another site may not write here.", 403)
    known = failure_answer(await failures_within(history, _ONE_SECONDS), fingerprint)  # only of what there is
    if why_off := await _why_no_notes(history):
        return message_response("Not allowed", why_off, 403)
    form = _fields(await short_body(request))
    if "text" not in form:  # of a form that is too long, or that did not come in time, nothing is known
        raise InvalidQuery(f"there is no note in this form: it may have at most {NOTE_CHARS:,} characters")
    await write_note(
        history,
        fingerprint,
        form["text"].replace("\r\n", "\n"),
        is_muted=form.get("muted") == "true",
        seen_in={cluster.partition("/")[0] for cluster in known.failure.clusters},
    )
    return RedirectResponse(failure_path(fingerprint), 303)


def _fields(body: bytes) -> Mapping[str, str]:
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


async def _why_no_notes(history: History) -> str:
    """Why nobody may write here; empty where people may."""
    if _is_open(history.access):
        return _OPEN
    return "" if await may_write(history, _ACCESS_SECONDS) else _READ_ONLY


def _is_open(access: AccessSettings) -> bool:
    return access.mode == "none" and not access.answers_localhost_only
