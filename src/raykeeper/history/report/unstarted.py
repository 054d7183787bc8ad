"""Reports without a session: on a cluster that never had one, and on a RayJob that never got as far.

All that is known is what Kubernetes said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from raykeeper.history.errors import NotFound
from raykeeper.history.query.history import History
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.input import Kubernetes, ReportInput
from raykeeper.history.report.model import Cause, Counts, Outcome, Report, Unknown
from raykeeper.history.report.pod_failures import pod_failures_of
from raykeeper.history.report.rules.rayjobs import rayjob_wait
from raykeeper.history.report.shape import headline_of
from raykeeper.history.store.kube_facts import KubeFacts, incarnations_of, read_facts
from raykeeper.history.store.rayjobs import RayJobReader
from raykeeper.layout.keys import SessionId
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.masking import masked_value
from raykeeper.storage.store import ObjectStore
from raykeeper.times import EPOCH, from_ns

NO_SESSION = "none"
"""Stands for the session's name."""
NO_CLUSTER = "none"
"""Stands for the cluster's name of a RayJob that never had one."""
_UNSEEN = Unknown("no session", "its head never said anything: all of this is what Kubernetes said")


async def report_on_unstarted(store: ObjectStore, namespace: str, cluster: str) -> Report | None:
    """Of the newest cluster of that name; None where Kubernetes said nothing about one."""
    facts = await _newest_facts(store, namespace, cluster)
    return unstarted_report(namespace, cluster, facts) if not facts.is_empty else None


async def session_of_rayjob(history: History, namespace: str, rayjob: str) -> SessionId | RayJobRecord:
    """The session of its last attempt; where that has none, what is known of the RayJob. Raises NotFound."""
    records = await RayJobReader(history.catalog.store).named(namespace, rayjob)
    if not records:  # nobody observed Kubernetes: sessions know for whom their clusters were made
        entry = await history.catalog.newest_of_owner(namespace, "rayjob", rayjob)
        if entry is None:
            raise NotFound(f"nothing is known of a RayJob {namespace}/{rayjob}")
        return entry.id
    record = records[0]
    session = await history.catalog.newest_of_cluster(namespace, record.clusters[-1]) if record.clusters else None
    return session or record


async def report_on_rayjob(store: ObjectStore, record: RayJobRecord) -> Report:
    """Of a RayJob whose last cluster has no session, or that has no cluster."""
    last = record.clusters[-1] if record.clusters else ""
    facts = await _newest_facts(store, record.namespace, last) if last else KubeFacts()
    return rayjob_report(record, facts)


async def _newest_facts(store: ObjectStore, namespace: str, cluster: str) -> KubeFacts:
    named = await incarnations_of(store, namespace, cluster)
    accounts = [await read_facts(store, namespace, cluster, one.uid) for one in named]
    return max((facts for facts in accounts if not facts.is_empty), key=_last_at, default=KubeFacts())


def unstarted_report(namespace: str, cluster: str, facts: KubeFacts) -> Report:
    """Why nothing of Ray was ever heard, as far as its pods and its RayJob tell."""
    about = ReportInput((), kubernetes=Kubernetes(pod_failures_of(facts)), rayjobs=facts.rayjobs, cluster=cluster)
    is_over = facts.cluster is not None and facts.cluster.deleted
    return _report(namespace, cluster, None, about, _last_at(facts), is_over=is_over)


def rayjob_report(record: RayJobRecord, facts: KubeFacts) -> Report:
    """Why a RayJob never ran, or what it waits for. `facts` are of its last cluster."""
    about = ReportInput((), kubernetes=Kubernetes(pod_failures_of(facts)), rayjobs=(record,))
    as_of = max(_last_at(facts), _seen_at(record))
    cluster = record.clusters[-1] if record.clusters else NO_CLUSTER
    return _report(record.namespace, cluster, record.name, about, as_of, is_over=record.is_final)


def why_without_cluster(record: RayJobRecord) -> str:
    """Why a RayJob never had a cluster, or what it waits for, in one line; empty where nobody said."""
    causes = rayjob_report(record, KubeFacts()).causes
    return causes[0].title if causes else ""


def _report(
    namespace: str, cluster: str, job: str | None, about: ReportInput, as_of: datetime, *, is_over: bool
) -> Report:
    explained = explain_all(about)
    causes = explained.causes
    outcome = _outcome(causes, is_over=is_over)
    report = Report(
        namespace=namespace,
        cluster=cluster,
        session=NO_SESSION,
        job=job,
        as_of=as_of,
        outcome=outcome,
        counts=Counts(0, 0, 0),
        headline=headline_of(explained),
        excerpts=(),
        steps=explained.details[0].steps if causes else (),
        root_cause=causes[0] if causes else None,
        causes=causes or _waits(about.rayjobs),
        groups=(),
        jobs=(),
        unknown=(_UNSEEN,),
    )
    return masked_value(report)


def _outcome(causes: Sequence[Cause], *, is_over: bool) -> Outcome:
    if any(not cause.is_intended for cause in causes):
        return Outcome.FAILED
    if causes:
        return Outcome.STOPPED
    return Outcome.OK if is_over else Outcome.RUNNING


def _waits(rayjobs: Sequence[RayJobRecord]) -> tuple[Cause, ...]:
    """What is waited for, where nothing failed so far."""
    told = [one for record in rayjobs if (one := rayjob_wait(record)) is not None]
    return tuple(Cause(one.rule, one.title, one.confidence, from_ns(one.at_ns), one.evidence) for one in told)


def _last_at(facts: KubeFacts) -> datetime:
    clusters = () if facts.cluster is None else (facts.cluster,)
    return max((fact.at for fact in (*facts.pods, *facts.events, *clusters)), default=EPOCH)


def _seen_at(record: RayJobRecord) -> datetime:
    times = (record.deleted_at, record.last.at if record.last else None)
    return max((time for time in times if time), default=EPOCH)
