"""The short of a report, for pages about more than that: how it went, the first cause, kinds of failure. Pure."""

from __future__ import annotations

from raykeeper.history.pages.addresses import report_path
from raykeeper.history.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.pages.widgets import Tone, badge, link, moment, quiet, table
from raykeeper.history.report.model import Cause, FailureGroup, Outcome, Report
from raykeeper.history.secretpatterns import masked_text
from raykeeper.layout.keys import SessionId

GROUPS_SHOWN = 12
_EVIDENCE_CHARS = 1200
_TITLE_CHARS = 300
_TONES: dict[Outcome, Tone] = {
    Outcome.OK: "good",
    Outcome.FAILED: "bad",
    Outcome.WITH_FAILURES: "warn",
    Outcome.STOPPED: "warn",
    Outcome.RUNNING: "busy",
    Outcome.FAILING: "warn",
}
_HEADERS = ("Failure", "Times", "In", "First")


def why_failed(report: Report) -> Html:
    """How it went, and why; the whole report is one click away."""
    path = report_path(SessionId(report.namespace, report.cluster, report.session), report.job)
    counts = report.counts
    said = f" {counts.failures:,} of {counts.attempts:,} attempts failed. " if counts.attempts else " "
    shown = badge("nothing is recorded") if report.is_blank else badge(report.outcome.value, _TONES[report.outcome])
    whole = tag("p", shown, said, link("The whole report", path))
    return join([tag("h2", "How it went"), whole, _first_cause(report.first_cause), _groups(report, path)])


def _first_cause(cause: Cause | None) -> Html:
    if cause is None:
        return EMPTY
    at = join([", ", moment(cause.at)]) if cause.at else EMPTY
    evidence = [tag("pre", masked_text(fact.text)[-_EVIDENCE_CHARS:]) for fact in cause.evidence[:1]]
    title = tag(
        "p",
        tag("strong", masked_text(cause.title)[:_TITLE_CHARS]),
        " ",
        tag("span", "(", cause.sureness.value, at, ")"),
    )
    return tag("section", tag("h3", "First cause"), title, *evidence, class_="panel bad")


def _groups(report: Report, path: str) -> Html:
    if not report.groups:
        return EMPTY
    shown = [_group_row(group, path) for group in report.groups[:GROUPS_SHOWN]]
    rest = len(report.groups) - len(shown)
    more = tag("p", quiet(f"{rest} more kinds of failure are in the whole report.")) if rest > 0 else EMPTY
    return join([table("Kinds of failure", _HEADERS, shown, numbers=("Times",)), more])


def _group_row(group: FailureGroup, path: str) -> tuple[str, ...]:
    functions = ", ".join(function.name for function in group.functions[:3])
    more = f" and {len(group.functions) - 3} more" if len(group.functions) > 3 else ""
    return (
        link(masked_text(group.title)[:_TITLE_CHARS], f"{path}#f-{group.fingerprint}"),
        f"{group.failures:,}",
        functions + more,
        moment(group.first_at),
    )
