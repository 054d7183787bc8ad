"""From explanations to causes, the first one first. Pure.

Failures that follow from others get the cause of those. One rule's explanations about the same subject are one cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import CUT, cause_key
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import NOWHERE, Cause, Confidence, Evidence, Excerpt, JobOutcome, Step
from raykeeper.history.report.naming import short
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.rules.entrypoints import DRIVER, driver_steps
from raykeeper.history.report.rules.jobs import explain_jobs
from raykeeper.history.report.rules.kubernetes import explanation_of, lost_head
from raykeeper.history.report.rules.rayjobs import FAILED_RAYJOB, rayjob_end
from raykeeper.history.report.rules.serve import is_of_serve, serve_error, unexplained_requests
from raykeeper.history.report.rules.start import never_scheduled, waited_at_end
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.rules.train import failed_rank
from raykeeper.history.text import shortened
from raykeeper.layout.records import HEAD_LOST, RAYLET_KILLED
from raykeeper.times import from_ns, to_ns

_ORDER = tuple(Confidence)
_EVIDENCE_LIMIT = 5
_EVIDENCE_CHARS = 2000  # of each of its two ends; the example has the whole message
_END = "ended_cluster"
_ENDED = "the record of the session's end says so"
_JOBS_NAMED = 3
_EXCERPTS_LIMIT = 4
_FOLLOWERS_SHOWN = 5

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
    followers: list[FailureSet] = field(default_factory=list)
    """What failed because others had failed of it."""
    jobs: list[JobOutcome] = field(default_factory=list)
    """Those that ended because of it."""


@dataclass(frozen=True)
class CauseDetails:
    """What is shown of the first cause alone."""

    what: str
    then: str
    basis: str
    excerpts: tuple[Excerpt, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Explained:
    """Causes in order, and for each fingerprint the place of its cause and how sure that is."""

    causes: tuple[Cause, ...]
    places: Mapping[str, tuple[int, Confidence]]
    details: tuple[CauseDetails, ...] = ()
    """Of each cause."""


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
        if one.id != root:
            builders[key].followers.append(one)
        keys[one.id] = key, max((found[link][1].confidence for link in chain), key=_ORDER.index)
    _add_deaths(builders, keys, report_input)
    _add_serve(builders, keys, report_input)
    _add_ranks(builders, keys, report_input)
    _add_jobs(builders, keys, report_input)
    _add_crash(builders, report_input)
    _add_end(builders, report_input)
    _add_waiting(builders, report_input)
    _add_unstarted(builders, report_input)
    _add_rayjobs(builders, report_input)
    order = sorted(builders, key=lambda key: (*_rank(builders[key]), key))
    place = {key: number for number, key in enumerate(order)}
    return Explained(
        causes=tuple(_cause(builders[key]) for key in order),
        places={id_: (place[key], confidence) for id_, (key, confidence) in keys.items()},
        details=tuple(_details(builders[key]) for key in order),
    )


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


def _add_serve(
    builders: dict[CauseKey, _CauseBuilder], keys: dict[str, tuple[CauseKey, Confidence]], report_input: ReportInput
) -> None:
    """What Serve's logs tell; and to replicas that died, how many requests failed."""
    record = report_input.serve
    for cause in builders.values():
        if is_of_serve(cause.explanation) and not cause.explanation.then:
            cause.explanation = replace(cause.explanation, then=record.in_words)
    for error in record.errors:
        told = serve_error(error, record)
        cause = builders.setdefault((told.rule, told.subject), _CauseBuilder(told.rule, told, None, [*told.evidence]))
        cause.deaths += error.times if error.is_of_replica else 0
        keys[error.id] = (told.rule, told.subject), told.confidence
    if not builders and (bare := unexplained_requests(record)) is not None:
        builders[bare.rule, ""] = _CauseBuilder(bare.rule, bare, None, [*bare.evidence])


def _add_ranks(
    builders: dict[CauseKey, _CauseBuilder], keys: dict[str, tuple[CauseKey, Confidence]], report_input: ReportInput
) -> None:
    """What ranks of Ray Train raised; the run may have gone on after that."""
    for error in report_input.train_errors:
        told = failed_rank(error)
        cause = _CauseBuilder(told.rule, told, told.at_ns, [*told.evidence], failures=len(error.ranks))
        cause.lasting = 0 if error.is_recovered else len(error.ranks)
        builders[told.rule, told.subject] = cause
        keys[error.id] = (told.rule, told.subject), told.confidence


def _add_jobs(
    builders: dict[CauseKey, _CauseBuilder], keys: Mapping[str, tuple[CauseKey, Confidence]], report_input: ReportInput
) -> None:
    """A job that ended because of a known cause makes that one fatal; else its end is a cause of its own."""
    for found in explain_jobs(report_input):
        explanation = found.explanation
        known = keys.get(explanation.because_of or "")
        key = known[0] if known else (found.rule, explanation.subject)
        cause = builders.setdefault(key, _CauseBuilder(found.rule, explanation, explanation.at_ns))
        cause.explanation = _as_end_of_job(cause.explanation, explanation)
        cause.evidence += [fact for fact in explanation.evidence if fact not in cause.evidence]
        cause.ends_job = True
        cause.jobs.append(found.job)


def _as_end_of_job(cause: Explanation, end: Explanation) -> Explanation:
    """A cause is no surer than that the job ended because of it, and rests on that where it is the weaker link."""
    weaker = max(cause.confidence, end.confidence, key=_ORDER.index)
    basis = cause.basis if weaker is cause.confidence else end.basis
    return replace(cause, confidence=weaker, basis=basis, then=cause.then or end.then)


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
    told = Explanation(title, Confidence.CONFIRMED, (fact,), to_ns(ending.ended_at), is_intended=True, basis=_ENDED)
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
            told = explanation_of(failure, Confidence.CONFIRMED)
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
        bool(cause.explanation.requests),
        cause.ends_job,  # stopped by its user
        not is_intended,  # made good by retries
    )
    return next((tier for tier, is_in in enumerate(tiers) if is_in), len(tiers)), cause.at_ns or 0


def _cause(cause: _CauseBuilder) -> Cause:
    explanation = cause.explanation
    error, where = explanation.error, explanation.where
    return Cause(
        rule=cause.rule,
        title=explanation.title,
        confidence=_confidence(explanation),
        at=from_ns(cause.at_ns),
        evidence=tuple(map(_short, cause.evidence[:_EVIDENCE_LIMIT])),
        fingerprint=cause_key(error or explanation.title, where, explanation.who),
        error=error,
        where=where,
        who=explanation.who,
        explains=tuple(cause.explains),
        failures=cause.failures,
        recovered=cause.failures - cause.lasting,
        deaths=cause.deaths,
        requests=explanation.requests,
        is_intended=explanation.is_intended,
        ends_job=cause.ends_job,
    )


def _details(cause: _CauseBuilder) -> CauseDetails:
    explanation = cause.explanation
    what = explanation.what or (explanation.who.text if explanation.who else "")
    basis = explanation.basis or _BASES[_confidence(explanation)]
    return CauseDetails(what, explanation.then, basis, explanation.excerpts[:_EXCERPTS_LIMIT], tuple(_steps(cause)))


def _confidence(explanation: Explanation) -> Confidence:
    """A rule that does not say what it rests on has confirmed nothing."""
    is_bare = explanation.confidence is Confidence.CONFIRMED and not explanation.basis
    return Confidence.LIKELY if is_bare else explanation.confidence


_BASES = {
    Confidence.LIKELY: "it fits in place and time, and nothing else does",
    Confidence.POSSIBLE: "nothing better is known",
}
"""Of causes whose rule says no more; what is confirmed has a basis of its own."""


def _steps(cause: _CauseBuilder) -> Iterator[Step]:
    """From what happened first to how the job ended."""
    explanation = cause.explanation
    address = next((fact.address for fact in cause.evidence if fact.address != NOWHERE), NOWHERE)
    if explanation.who == DRIVER and explanation.then:  # what the driver gave up for came before
        yield Step(explanation.then)
    yield Step(shortened(_origin(explanation)), from_ns(cause.at_ns), address)
    for one in sorted(cause.followers, key=lambda one: (one.first_ns, one.id))[:_FOLLOWERS_SHOWN]:
        times = f" ({one.failures:,} times)" if one.failures > 1 else ""
        name = short(one.first.who, one.first.function)
        yield Step(f"{name} failed with it{times}", from_ns(one.first_ns), one.first.address)
    for job in cause.jobs[:_JOBS_NAMED]:
        yield from driver_steps(job, explanation.who)


def _origin(explanation: Explanation) -> str:
    what = explanation.what or (explanation.who.text if explanation.who else "")
    return f"{what}: {explanation.error}" if what and explanation.error else explanation.title


def _short(fact: Evidence) -> Evidence:
    text = fact.text.strip()
    if len(text) > 2 * _EVIDENCE_CHARS:
        text = f"{text[:_EVIDENCE_CHARS]}{CUT}{text[-_EVIDENCE_CHARS:]}"
    return replace(fact, text=text)
