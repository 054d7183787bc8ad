"""From explanations to causes, the first one first. Pure.

Failures that follow from others get the cause of those. One rule's explanations about the same subject are one cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import CUT
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Cause, Confidence, Evidence
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.rules.jobs import explain_jobs
from raykeeper.history.report.rules.kubernetes import explanation_of, lost_head
from raykeeper.history.report.rules.rayjobs import FAILED_RAYJOB, rayjob_end
from raykeeper.history.report.rules.start import never_scheduled, waited_at_end
from raykeeper.history.report.rules.table import explain
from raykeeper.layout.records import HEAD_LOST, RAYLET_KILLED
from raykeeper.times import from_ns, to_ns

_ORDER = tuple(Confidence)
_EVIDENCE_LIMIT = 5
_EVIDENCE_CHARS = 2000  # of each of its two ends; the example has the whole message
_END = "ended_cluster"
_JOBS_NAMED = 3

CauseKey = tuple[str, str]
"""Rule and subject."""


@dataclass
class _CauseBuilder:
    rule: str
    explanation: Explanation
    at_ns: int | None
    evidence: list[Evidence] = field(default_factory=list)
    explains: list[str] = field(default_factory=list)
    failures: int = 0
    lasting: int = 0
    """Failures that no retry made good."""
    deaths: int = 0
    ends_job: bool = False


@dataclass(frozen=True)
class Explained:
    """Causes in order, and for each fingerprint the place of its cause and how sure that is."""

    causes: tuple[Cause, ...]
    places: Mapping[str, tuple[int, Confidence]]


def explain_all(report_input: ReportInput) -> Explained:
    """The causes of all failures. The first is the earliest of those that ended a job, or else of the lasting ones."""
    found = {one.id: explain(one, report_input) for one in report_input.sets}
    builders: dict[CauseKey, _CauseBuilder] = {}
    keys: dict[str, tuple[CauseKey, Confidence]] = {}
    for one in sorted(report_input.sets, key=lambda one: (one.first_ns, one.id)):
        chain = list(_chain(one.id, found))
        root, (rule, explanation) = chain[-1], found[chain[-1]]
        key = (rule, explanation.subject or root)
        _grow(builders, key, explanation, one, [found[link][1] for link in chain])
        keys[one.id] = key, max((found[link][1].confidence for link in chain), key=_ORDER.index)
    _add_deaths(builders, keys, report_input)
    _add_jobs(builders, keys, report_input)
    _add_crash(builders, report_input)
    _add_end(builders, report_input)
    _add_waiting(builders, report_input)
    _add_unstarted(builders, report_input)
    _add_rayjobs(builders, report_input)
    order = sorted(builders, key=lambda key: (*_rank(builders[key]), key))
    place = {key: number for number, key in enumerate(order)}
    causes = tuple(_cause(builders[key]) for key in order)
    return Explained(causes, {id_: (place[key], confidence) for id_, (key, confidence) in keys.items()})


def _chain(start: str, found: Mapping[str, tuple[str, Explanation]]) -> Iterator[str]:
    """From a set to the one it follows from, and so on; each at most once."""
    seen: set[str] = set()
    link = start
    while link in found and link not in seen:
        seen.add(link)
        yield link
        link = found[link][1].because_of or ""


def _grow(
    builders: dict[CauseKey, _CauseBuilder],
    key: CauseKey,
    explanation: Explanation,
    failed: FailureSet,
    chain: Sequence[Explanation],
) -> None:
    cause = builders.setdefault(key, _CauseBuilder(key[0], explanation, explanation.at_ns))
    cause.at_ns = min(filter(None, (cause.at_ns, explanation.at_ns)), default=None)
    cause.evidence += [fact for link in reversed(chain) for fact in link.evidence if fact not in cause.evidence]
    cause.explains.append(failed.id)
    cause.failures += failed.failures
    cause.lasting += failed.failures - failed.recovered


def _add_deaths(
    builders: dict[CauseKey, _CauseBuilder], keys: dict[str, tuple[CauseKey, Confidence]], report_input: ReportInput
) -> None:
    """Processes that died without a word of any task; of those that died alike, the first one's words."""
    for death in report_input.deaths:
        told = unasked_death(death, report_input)
        if told is not None:
            key = (told.rule or unasked_death.__name__, told.subject)
            cause = builders.setdefault(key, _CauseBuilder(key[0], told, told.at_ns, list(told.evidence)))
            cause.deaths += 1
            keys[death.id] = key, told.confidence


def _add_jobs(
    builders: dict[CauseKey, _CauseBuilder], keys: Mapping[str, tuple[CauseKey, Confidence]], report_input: ReportInput
) -> None:
    """A job that ended because of a known cause makes that one fatal; else its end is a cause of its own."""
    for found in explain_jobs(report_input):
        explanation = found.explanation
        known = keys.get(explanation.because_of or "")
        key = known[0] if known else (found.rule, explanation.subject)
        cause = builders.setdefault(key, _CauseBuilder(found.rule, explanation, explanation.at_ns))
        weaker = max(cause.explanation.confidence, explanation.confidence, key=_ORDER.index)
        cause.explanation = replace(cause.explanation, confidence=weaker)
        cause.evidence += [fact for fact in explanation.evidence if fact not in cause.evidence]
        cause.ends_job = True


_FELL_SILENT = "the head's heartbeats stopped and it never said that it ended"
_CRASHES = {
    RAYLET_KILLED: "the head's raylet was killed or aborted: it was gone, and nothing had asked it to end",
    HEAD_LOST: "Kubernetes has no head of the cluster any more, and nobody had ended it",
}


def _add_crash(builders: dict[CauseKey, _CauseBuilder], report_input: ReportInput) -> None:
    """A head that fell silent took everything with it that was open then: of its own, or with its pod."""
    ending, jobs = report_input.ending, report_input.cut_off_jobs
    if not ending.is_crash or ending.ended_at is None or not (ending.cut_off or jobs):
        return
    facts = [Evidence("session", _CRASHES.get(ending.reason, _FELL_SILENT), ending.ended_at)]
    if ending.cut_off:
        facts.append(Evidence("session", f"{ending.cut_off} attempts were open at that time"))
    lost = lost_head(report_input, ending.ended_at, tuple(facts))
    cause = builders.setdefault((lost.rule, lost.subject), _CauseBuilder(lost.rule, lost, lost.at_ns))
    cause.evidence += [fact for fact in lost.evidence if fact not in cause.evidence]
    cause.failures += ending.cut_off
    cause.lasting += ending.cut_off
    cause.ends_job = cause.ends_job or bool(jobs)


def _add_end(builders: dict[CauseKey, _CauseBuilder], report_input: ReportInput) -> None:
    """A cluster that was ended over jobs at work."""
    ending, jobs = report_input.ending, report_input.cut_off_jobs
    if ending.is_crash or ending.ended_at is None or not jobs:
        return
    names = [job.submission_id or job.job_id or "of no name" for job in jobs]
    fact = Evidence("session", f"the cluster was ended: {ending.reason or 'nobody said why'}", ending.ended_at)
    title = f"the cluster was ended while {_jobs_at_work(names)} at work"
    told = Explanation(title, Confidence.CERTAIN, (fact,), to_ns(ending.ended_at), is_intended=True)
    builders[_END, ""] = _CauseBuilder(_END, told, told.at_ns, [fact], ends_job=True)


def _jobs_at_work(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"job {names[0]} was"
    more = f" and {len(names) - _JOBS_NAMED} more" if len(names) > _JOBS_NAMED else ""
    return f"jobs {', '.join(names[:_JOBS_NAMED])}{more} were"


def _add_waiting(builders: dict[CauseKey, _CauseBuilder], report_input: ReportInput) -> None:
    """What a job waited for until its cluster was ended over it is why it did not end by itself."""
    if report_input.ending.is_crash:
        return
    cut_off = {job.job_id for job in report_input.cut_off_jobs}
    for waiting in report_input.waiting:
        told = waited_at_end(waiting, report_input) if waiting.job_id in cut_off else None
        if told is not None:
            cause = _CauseBuilder(never_scheduled.__name__, told, told.at_ns, list(told.evidence), ends_job=True)
            builders.setdefault((cause.rule, waiting.function), cause)


def _add_unstarted(builders: dict[CauseKey, _CauseBuilder], report_input: ReportInput) -> None:
    """Pods that never came up explain a job that never began, and a cluster that never was; its head first."""
    if any(not cause.explanation.is_intended for cause in builders.values()):
        return
    if report_input.jobs and not report_input.cut_off_jobs:
        return
    for failure in report_input.kubernetes.failures:
        if failure.keeps_from_starting:
            told = explanation_of(failure, Confidence.CERTAIN)
            cause = _CauseBuilder(told.rule, told, told.at_ns, list(told.evidence), ends_job=failure.is_of_head)
            builders.setdefault((told.rule, told.subject), cause)


def _add_rayjobs(builders: dict[CauseKey, _CauseBuilder], report_input: ReportInput) -> None:
    """Deadlines, deletions and what else the operator did. A bare failure adds nothing to a cause that is known."""
    is_explained = any(cause.ends_job and not cause.explanation.is_intended for cause in builders.values())
    for record in report_input.rayjobs:
        told = rayjob_end(record, report_input.cluster)
        if told is not None and not (is_explained and told.rule == FAILED_RAYJOB):
            cause = _CauseBuilder(told.rule, told, told.at_ns, list(told.evidence), ends_job=True)
            builders.setdefault((told.rule, told.subject), cause)


def _rank(cause: _CauseBuilder) -> tuple[int, int]:
    """By tier, and within it the earliest first."""
    is_intended = cause.explanation.is_intended
    tiers = (
        cause.ends_job and not is_intended,
        bool(cause.lasting or cause.deaths) and not is_intended,
        cause.ends_job,  # stopped by its user
        not is_intended,  # made good by retries
    )
    return next((tier for tier, is_in in enumerate(tiers) if is_in), len(tiers)), cause.at_ns or 0


def _cause(cause: _CauseBuilder) -> Cause:
    explanation = cause.explanation
    return Cause(
        rule=cause.rule,
        title=explanation.title,
        confidence=explanation.confidence,
        at=from_ns(cause.at_ns),
        evidence=tuple(map(_short, cause.evidence[:_EVIDENCE_LIMIT])),
        explains=tuple(cause.explains),
        failures=cause.failures,
        deaths=cause.deaths,
        is_intended=explanation.is_intended,
        ends_job=cause.ends_job,
    )


def _short(fact: Evidence) -> Evidence:
    text = fact.text.strip()
    if len(text) > 2 * _EVIDENCE_CHARS:
        text = f"{text[:_EVIDENCE_CHARS]}{CUT}{text[-_EVIDENCE_CHARS:]}"
    return replace(fact, text=text)
