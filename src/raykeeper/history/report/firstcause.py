"""From explanations to causes, the first one first. Pure.

Failures that follow from others get the cause of those. One rule's explanations about the same subject are one cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import CUT
from raykeeper.history.report.model import Cause, Evidence, Sureness
from raykeeper.history.report.rules.jobs import explain_jobs
from raykeeper.history.report.rules.kubernetes import explanation_of, lost_head
from raykeeper.history.report.rules.starting import never_scheduled, waited_at_end
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.situation import Explanation, Situation, moment, to_ns

_ORDER = tuple(Sureness)
_EVIDENCE_LIMIT = 5
_EVIDENCE_CHARS = 2000  # of each of its two ends; the example has the whole message
_CRASH, _END = "crashed_cluster", "ended_cluster"
_JOBS_NAMED = 3

CauseKey = tuple[str, str]
"""Rule and subject."""


@dataclass
class _Growing:
    rule: str
    explanation: Explanation
    at_ns: int | None
    evidence: list[Evidence] = field(default_factory=list)
    explains: list[str] = field(default_factory=list)
    failures: int = 0
    lasting: int = 0
    """Failures that no retry made good."""
    ends_job: bool = False


@dataclass(frozen=True)
class Explained:
    """Causes in order, and for each fingerprint the place of its cause and how sure that is."""

    causes: tuple[Cause, ...]
    places: Mapping[str, tuple[int, Sureness]]


def explain_all(situation: Situation) -> Explained:
    """The causes of all failures. The first is the earliest of those that ended a job, or else of the lasting ones."""
    found = {one.id: explain(one, situation) for one in situation.sets}
    growing: dict[CauseKey, _Growing] = {}
    keys: dict[str, tuple[CauseKey, Sureness]] = {}
    for one in sorted(situation.sets, key=lambda one: (one.first_ns, one.id)):
        chain = list(_chain(one.id, found))
        root, (rule, explanation) = chain[-1], found[chain[-1]]
        key = (rule, explanation.subject or root)
        _grow(growing, key, explanation, one, [found[link][1] for link in chain])
        keys[one.id] = key, max((found[link][1].sureness for link in chain), key=_ORDER.index)
    _add_jobs(growing, keys, situation)
    _add_crash(growing, situation)
    _add_end(growing, situation)
    _add_waiting(growing, situation)
    _add_unstarted(growing, situation)
    order = sorted(growing, key=lambda key: (*_rank(growing[key]), key))
    place = {key: number for number, key in enumerate(order)}
    causes = tuple(_cause(growing[key]) for key in order)
    return Explained(causes, {id_: (place[key], sureness) for id_, (key, sureness) in keys.items()})


def _chain(start: str, found: Mapping[str, tuple[str, Explanation]]) -> Iterator[str]:
    """From a set to the one it follows from, and so on; each at most once."""
    seen: set[str] = set()
    link = start
    while link in found and link not in seen:
        seen.add(link)
        yield link
        link = found[link][1].because_of or ""


def _grow(
    growing: dict[CauseKey, _Growing],
    key: CauseKey,
    explanation: Explanation,
    failed: FailureSet,
    chain: Sequence[Explanation],
) -> None:
    cause = growing.setdefault(key, _Growing(key[0], explanation, explanation.at_ns))
    cause.at_ns = min(filter(None, (cause.at_ns, explanation.at_ns)), default=None)
    cause.evidence += [fact for link in reversed(chain) for fact in link.evidence if fact not in cause.evidence]
    cause.explains.append(failed.id)
    cause.failures += failed.failures
    cause.lasting += failed.failures - failed.recovered


def _add_jobs(
    growing: dict[CauseKey, _Growing], keys: Mapping[str, tuple[CauseKey, Sureness]], situation: Situation
) -> None:
    """A job that ended because of a known cause makes that one fatal; else its end is a cause of its own."""
    for found in explain_jobs(situation):
        explanation = found.explanation
        known = keys.get(explanation.because_of or "")
        key = known[0] if known else (found.rule, explanation.subject)
        cause = growing.setdefault(key, _Growing(found.rule, explanation, explanation.at_ns))
        weaker = max(cause.explanation.sureness, explanation.sureness, key=_ORDER.index)
        cause.explanation = replace(cause.explanation, sureness=weaker)
        cause.evidence += [fact for fact in explanation.evidence if fact not in cause.evidence]
        cause.ends_job = True


def _add_crash(growing: dict[CauseKey, _Growing], situation: Situation) -> None:
    """A head that fell silent took everything with it that was open then: of its own, or with its pod."""
    ending, jobs = situation.ending, situation.cut_off_jobs
    if not ending.is_crash or ending.ended_at is None or not (ending.cut_off or jobs):
        return
    facts = [Evidence("session", "the head's heartbeats stopped and it never said that it ended", ending.ended_at)]
    if ending.cut_off:
        facts.append(Evidence("session", f"{ending.cut_off} attempts were open at that time"))
    lost = Explanation(
        "the cluster's head was lost", Sureness.LIKELY, tuple(facts), to_ns(ending.ended_at), rule=_CRASH
    )
    if found := lost_head(situation):
        told = explanation_of(*found)
        lost = replace(told, title=f"the cluster's head was lost: {told.title}", evidence=(*told.evidence, *facts))
    cause = growing.setdefault((lost.rule, lost.subject), _Growing(lost.rule, lost, lost.at_ns))
    cause.evidence += [fact for fact in lost.evidence if fact not in cause.evidence]
    cause.failures += ending.cut_off
    cause.lasting += ending.cut_off
    cause.ends_job = cause.ends_job or bool(jobs)


def _add_end(growing: dict[CauseKey, _Growing], situation: Situation) -> None:
    """A cluster that was ended over jobs at work."""
    ending, jobs = situation.ending, situation.cut_off_jobs
    if ending.is_crash or ending.ended_at is None or not jobs:
        return
    names = [job.submission_id or job.job_id or "of no name" for job in jobs]
    fact = Evidence("session", f"the cluster was ended: {ending.reason or 'nobody said why'}", ending.ended_at)
    title = f"the cluster was ended while {_jobs_at_work(names)} at work"
    told = Explanation(title, Sureness.CERTAIN, (fact,), to_ns(ending.ended_at), is_intended=True)
    growing[_END, ""] = _Growing(_END, told, told.at_ns, [fact], ends_job=True)


def _jobs_at_work(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"job {names[0]} was"
    more = f" and {len(names) - _JOBS_NAMED} more" if len(names) > _JOBS_NAMED else ""
    return f"jobs {', '.join(names[:_JOBS_NAMED])}{more} were"


def _add_waiting(growing: dict[CauseKey, _Growing], situation: Situation) -> None:
    """What a job waited for until its cluster was ended over it is why it did not end by itself."""
    if situation.ending.is_crash:
        return
    cut_off = {job.job_id for job in situation.cut_off_jobs}
    for waiting in situation.waiting:
        told = waited_at_end(waiting, situation) if waiting.job_id in cut_off else None
        if told is not None:
            cause = _Growing(never_scheduled.__name__, told, told.at_ns, list(told.evidence), ends_job=True)
            growing.setdefault((cause.rule, waiting.function), cause)


def _add_unstarted(growing: dict[CauseKey, _Growing], situation: Situation) -> None:
    """Pods that never came up explain a job that never began, and a cluster that never was; its head first."""
    if any(not cause.explanation.is_intended for cause in growing.values()):
        return
    if situation.jobs and not situation.cut_off_jobs:
        return
    for trouble in situation.kubernetes.troubles:
        if trouble.keeps_from_starting:
            told = explanation_of(trouble, Sureness.CERTAIN)
            cause = _Growing(told.rule, told, told.at_ns, list(told.evidence), ends_job=trouble.is_of_head)
            growing.setdefault((told.rule, told.subject), cause)


def _rank(cause: _Growing) -> tuple[int, int]:
    """By tier, and within it the earliest first."""
    is_intended = cause.explanation.is_intended
    tiers = (
        cause.ends_job and not is_intended,
        bool(cause.lasting) and not is_intended,
        cause.ends_job,  # stopped by its user
        not is_intended,  # made good by retries
    )
    return next((tier for tier, is_in in enumerate(tiers) if is_in), len(tiers)), cause.at_ns or 0


def _cause(cause: _Growing) -> Cause:
    explanation = cause.explanation
    return Cause(
        rule=cause.rule,
        title=explanation.title,
        sureness=explanation.sureness,
        at=moment(cause.at_ns),
        evidence=tuple(map(_short, cause.evidence[:_EVIDENCE_LIMIT])),
        explains=tuple(cause.explains),
        failures=cause.failures,
        is_intended=explanation.is_intended,
        ends_job=cause.ends_job,
    )


def _short(fact: Evidence) -> Evidence:
    text = fact.text.strip()
    if len(text) > 2 * _EVIDENCE_CHARS:
        text = f"{text[:_EVIDENCE_CHARS]}{CUT}{text[-_EVIDENCE_CHARS:]}"
    return replace(fact, text=text)
