"""Two runs side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.task_tables import in_words
from raykeeper.history.http.pages.widgets import duration, facts, link, moment, note, nothing, quiet, table
from raykeeper.history.overview.model import (
    ComparedFact,
    ComparedFailure,
    ComparedFunction,
    ComparedRun,
    Comparison,
    FunctionRow,
)
from raykeeper.history.urls import compare_path, job_path, overview_path
from raykeeper.layout.keys import SessionId

_TITLE = "Compare two runs"
_TITLE_CHARS = 300
HELP = (
    "A run is <namespace>/<cluster>/<session>, or <namespace>/<cluster>/<session>/<job> for one of its jobs; "
    "latest stands for the session that started last."
)


def compare_form_page(a: str = "", b: str = "", problem: str = "", others: Sequence[SessionId] = ()) -> HTMLResponse:
    """Asks which runs; `problem` is why those two cannot be compared, `others` are sessions that may be meant."""
    said = note(problem, "bad") if problem else EMPTY
    body = join([said, _form(a, b), _others(a, others)])
    return page_response(_TITLE, body, 400 if problem else 200, section="compare")


def _others(a: str, others: Sequence[SessionId]) -> Html:
    """Sessions are compared with sessions: which job of another one is meant, nobody knows."""
    if not others:
        return EMPTY
    session = "/".join(a.split("/")[:3])
    rows = [tag("li", link(str(other), compare_path(session, str(other)))) for other in others]
    return join([tag("h2", "With a recent session of the same namespace"), tag("ul", *rows)])


def compare_page(comparison: Comparison) -> HTMLResponse:
    a, b = str(comparison.a.ref), str(comparison.b.ref)
    body = join(
        [
            _form(a, b),
            tag("p", link("Swap", compare_path(b, a))),
            tag("div", _run("A", comparison.a), _run("B", comparison.b), class_="beside-each-other"),
            _facts(comparison),
            _failures(comparison.failures),
            _functions(comparison),
        ]
    )
    return page_response(_TITLE, body, section="compare")


def _form(a: str, b: str) -> Html:
    boxes = [
        tag(
            "label",
            f"Run {name.upper()}",
            tag("input", type="text", name=name, value=value, required=True, maxlength=1000),
        )
        for name, value in (("a", a), ("b", b))
    ]
    form = tag("form", *boxes, tag("button", "Compare"), action="/compare", method="get", class_="filters runs")
    return join([form, tag("p", quiet(HELP))])


def _run(name: str, run: ComparedRun) -> Html:
    session = SessionId(run.ref.namespace, run.ref.cluster, run.ref.session)
    path = job_path(session, run.ref.job) if run.ref.job else overview_path(session)
    took = duration(run.ended_at - run.started_at) if run.started_at and run.ended_at else ""
    shown = facts([("Status", run.status), ("Started", moment(run.started_at)), ("Took", took)])
    return tag("section", tag("h2", f"Run {name}"), tag("p", link(str(run.ref), path)), shown, class_="panel")


def _facts(comparison: Comparison) -> Html:
    heading = tag("h2", "What differs")
    headers = ("What", "A", "B")
    shown = (
        table("What differs", headers, map(_fact_row, comparison.differing), hides_caption=True)
        if comparison.differing
        else nothing("Entrypoint, runtime environment, versions, resources and outcome are the same.")
    )
    if not comparison.same:
        return join([heading, shown])
    rows = [(_what(fact), fact.a) for fact in comparison.same]
    same = tag(
        "details", tag("summary", f"What is the same ({len(rows)})"), table("What is the same", ("What", "Both"), rows)
    )
    return join([heading, shown, same])


def _fact_row(fact: ComparedFact) -> tuple[str, ...]:
    none = quiet("none")
    return _what(fact), fact.a or none, fact.b or none


def _what(fact: ComparedFact) -> str:
    """What a topic of one fact is about, is said once."""
    return fact.name if fact.name.lower() == fact.topic else f"{fact.topic}: {fact.name}"


def _failures(failures: Sequence[ComparedFailure]) -> Html:
    heading = tag("h2", "Failures")
    if not failures:
        return join([heading, nothing("Nothing failed in either run.")])
    rows = [
        (failure.title[:_TITLE_CHARS], failure.error_type, _where(failure), f"{failure.a:,}", f"{failure.b:,}")
        for failure in failures
    ]
    headers = ("Failure", "Error type", "In", "Attempts in A", "Attempts in B")
    return join([heading, table("Failures", headers, rows, hides_caption=True, numbers=headers[3:])])


def _where(failure: ComparedFailure) -> str:
    if failure.a and failure.b:
        return "both"
    return "A only" if failure.a else "B only"


def _functions(comparison: Comparison) -> Html:
    heading = tag("h2", "By function")
    if not comparison.functions:
        return join([heading, nothing("Neither run has tasks.")])
    headers = (
        "Function",
        "Attempts A",
        "Attempts B",
        "p50 A",
        "p50 B",
        "Change",
        "Total A",
        "Total B",
    )
    rows = [_function_row(one) for one in comparison.functions]
    left_out = comparison.functions_left_out
    more = tag("p", quiet(f"{left_out:,} functions that changed less are not listed.")) if left_out else EMPTY
    shown = table("By function", headers, rows, name="functions", hides_caption=True, numbers=headers[1:])
    return join([heading, shown, more])


def _function_row(one: ComparedFunction) -> tuple[str, ...]:
    a, b = one.a, one.b
    return (
        one.name,
        f"{a.attempts:,}" if a else "",
        f"{b.attempts:,}" if b else "",
        _median(a),
        _median(b),
        _change(a, b),
        _total(a),
        _total(b),
    )


def _median(row: FunctionRow | None) -> str:
    return "" if row is None or row.p50_seconds is None else in_words(row.p50_seconds)


def _change(a: FunctionRow | None, b: FunctionRow | None) -> str:
    """Of the median: that is what one slow attempt does not move."""
    if a is None or b is None or not a.p50_seconds or b.p50_seconds is None:
        return ""
    return f"{b.p50_seconds / a.p50_seconds - 1:+.0%}"


def _total(row: FunctionRow | None) -> str:
    return in_words(row.total_seconds) if row and row.p50_seconds is not None else ""
