"""Two runs side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.task_tables import in_words
from raykeeper.history.http.pages.widgets import duration, facts, link, moment, note, nothing, quiet, table
from raykeeper.history.overview.compare import less_is_better
from raykeeper.history.overview.model import (
    Change,
    ComparedFact,
    ComparedFailure,
    ComparedFunction,
    ComparedRun,
    Comparison,
    FunctionRow,
    Topic,
    Verdict,
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


_TOPICS: dict[Topic, str] = {
    "outcome": "Outcome",
    "entrypoint": "Entry point",
    "arguments": "Arguments",
    "env vars": "Environment variables",
    "packages": "Packages",
    "runtime env": "Runtime environment",
    "versions": "Versions",
    "resources": "Resources",
}
_CHANGES: dict[Change, str] = {"same": "same", "added": "+ added", "removed": "- removed", "changed": "changed"}
_MASKED = "Values of env_vars are masked: only that one was added or removed is told."


def _facts(comparison: Comparison) -> Html:
    """What differs by topic: A is the base, so a change is from A to B."""
    heading = tag("h2", "What differs")
    if not comparison.differing:
        words = "Entry point, arguments, packages, environment, versions, resources and outcome are the same."
        return join([heading, nothing(words), _same(comparison)])
    tables = [_topic(title, topic, comparison.differing) for topic, title in _TOPICS.items()]
    return join([heading, *tables, _same(comparison)])


def _topic(title: str, topic: Topic, differing: Sequence[ComparedFact]) -> Html:
    rows = [_fact_row(fact) for fact in differing if fact.topic == topic]
    if not rows:
        return EMPTY
    aside = tag("p", quiet(_MASKED)) if topic == "env vars" else EMPTY
    return tag("div", table(title, ("What", "A", "B", "Change"), rows), aside, class_="topic")


def _same(comparison: Comparison) -> Html:
    if not comparison.same:
        return EMPTY
    rows = [(_what(fact), fact.a) for fact in comparison.same]
    shown = table("What is the same", ("What", "Both"), rows)
    return tag("details", tag("summary", f"What is the same ({len(rows)})"), shown)


def _fact_row(fact: ComparedFact) -> tuple[str, ...]:
    none = quiet("none")
    words = fact.delta or _CHANGES[fact.change]
    return fact.name, fact.a or none, fact.b or none, _delta(words, fact.verdict)


def _what(fact: ComparedFact) -> str:
    """What a topic of one fact is about, is said once."""
    topic = _TOPICS[fact.topic]
    return fact.name if fact.topic == "entrypoint" else f"{topic}: {fact.name}"


def _delta(words: str, verdict: Verdict, told: tuple[str, str] = ("better", "worse")) -> Html:
    """A change in colour, and in words for whoever does not see colours: `told` is what better and worse are here."""
    if not verdict:
        return tag("span", words, class_="delta")
    meant = told[0] if verdict == "better" else told[1]
    return tag("span", join([part for part in (words, meant) if part], ", "), class_=f"delta {verdict}")


def _failures(failures: Sequence[ComparedFailure]) -> Html:
    heading = tag("h2", "Failures")
    if not failures:
        return join([heading, nothing("Nothing failed in either run.")])
    rows = [
        (
            failure.title[:_TITLE_CHARS],
            failure.error_type,
            f"{failure.a:,}",
            f"{failure.b:,}",
            _delta(failure.change, failure.verdict, ("", "")),
        )
        for failure in failures
    ]
    headers = ("Failure", "Error type", "Attempts A", "Attempts B", "Change")
    return join([heading, table("Failures", headers, rows, hides_caption=True, numbers=headers[2:4])])


def _functions(comparison: Comparison) -> Html:
    heading = tag("h2", "By function")
    if not comparison.functions:
        return join([heading, nothing("Neither run has tasks.")])
    headers = ("Function", "Attempts", "Failed", "p50", "Change of p50", "Total time")
    rows = [_function_row(one) for one in comparison.functions]
    left_out = comparison.functions_left_out
    more = tag("p", quiet(f"{left_out:,} functions that changed less are not listed.")) if left_out else EMPTY
    shown = table("By function, from A to B", headers, rows, name="functions", hides_caption=True, numbers=headers[1:])
    return join([heading, tag("p", quiet("From A to B.")), shown, more])


def _function_row(one: ComparedFunction) -> tuple[str, ...]:
    a, b = one.a, one.b
    failed = (a.failed if a else 0, b.failed if b else 0)
    judged = less_is_better(*failed) if a and b else ""
    return (
        one.name,
        _both(f"{a.attempts:,}" if a else "", f"{b.attempts:,}" if b else ""),
        _delta(_both(*(f"{number:,}" for number in failed)), judged, ("fewer", "more")),
        _both(_median(a), _median(b)),
        _speed(one),
        _both(_total(a), _total(b)),
    )


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a or 'none'} → {b or 'none'}"


def _median(row: FunctionRow | None) -> str:
    return "" if row is None or row.p50_seconds is None else in_words(row.p50_seconds)


def _speed(one: ComparedFunction) -> Html:
    if one.a is None or one.b is None:
        return _delta(_CHANGES["added" if one.a is None else "removed"], "")
    return EMPTY if one.change is None else _delta(f"{one.change:+.0%}", one.verdict, ("faster", "slower"))


def _total(row: FunctionRow | None) -> str:
    return in_words(row.total_seconds) if row and row.p50_seconds is not None else ""
