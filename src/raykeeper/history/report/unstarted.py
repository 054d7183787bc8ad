"""The report on a cluster that never had a session: all that is known is what Kubernetes said about its pods."""

from __future__ import annotations

from datetime import UTC, datetime

from raykeeper.history.kubefacts.clusters import incarnations_of
from raykeeper.history.kubefacts.merged import KubeFacts
from raykeeper.history.kubefacts.reading import read_facts
from raykeeper.history.report.firstcause import explain_all
from raykeeper.history.report.masking import without_secrets
from raykeeper.history.report.model import Counts, Outcome, Report, Unknown
from raykeeper.history.report.situation import Kubernetes, Situation
from raykeeper.history.report.troubles import troubles_of
from raykeeper.storage.store import ObjectStore

NO_SESSION = "none"
"""Stands for the session's name."""
_EPOCH = datetime.fromtimestamp(0, UTC)


async def report_on_unstarted(store: ObjectStore, namespace: str, cluster: str) -> Report | None:
    """Of the newest cluster of that name; None where Kubernetes said nothing about one."""
    named = await incarnations_of(store, namespace, cluster)
    accounts = [await read_facts(store, namespace, cluster, one.uid) for one in named]
    told = [facts for facts in accounts if not facts.is_empty]
    return unstarted_report(namespace, cluster, max(told, key=_last_at)) if told else None


def unstarted_report(namespace: str, cluster: str, facts: KubeFacts) -> Report:
    """Why nothing of Ray was ever heard, as far as its pods tell."""
    explained = explain_all(Situation((), kubernetes=Kubernetes(troubles_of(facts))))
    causes = explained.causes
    is_over = facts.cluster is not None and facts.cluster.deleted
    outcome = Outcome.FAILED if causes else Outcome.OK if is_over else Outcome.RUNNING
    report = Report(
        namespace=namespace,
        cluster=cluster,
        session=NO_SESSION,
        job=None,
        as_of=_last_at(facts),
        outcome=outcome,
        counts=Counts(0, 0, 0),
        first_cause=causes[0] if causes else None,
        causes=causes,
        groups=(),
        jobs=(),
        unknown=(Unknown("no session", "its head never said anything: all of this is what Kubernetes said"),),
    )
    return without_secrets(report)


def _last_at(facts: KubeFacts) -> datetime:
    clusters = () if facts.cluster is None else (facts.cluster,)
    return max((fact.at for fact in (*facts.pods, *facts.events, *clusters)), default=_EPOCH)
