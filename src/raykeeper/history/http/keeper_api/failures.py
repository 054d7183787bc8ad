"""Operations on kinds of failure: those of all sessions, and one of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from raykeeper.history.errors import NotFound
from raykeeper.history.failures.index import KnownFailures, failures_within
from raykeeper.history.failures.kinds import FailureKind, FailureState, SeenRun
from raykeeper.history.http.keeper_api.operation import Call, NoQuery, Operation, Query
from raykeeper.history.http.keeper_api.sessions import PAGE_LIMIT, PAGE_ROWS, Name
from raykeeper.history.store.catalog_entries import has_words
from raykeeper.history.urls import failure_path, report_path
from raykeeper.layout.failure_notes import FailureNote
from raykeeper.masking import masked_text

_WAIT_SECONDS = 10.0
"""For the first look through a store with very many sessions; the next request finds what it found."""
Wanted = Literal["new", "regressed", "ongoing", "gone", "muted"]


class FailuresQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which kinds of failure are wanted, and from where on."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="Kinds of one page.")] = PAGE_ROWS
    start: Annotated[int, Meta(ge=0, le=100_000, description="Kinds to leave out at the beginning.")] = 0
    state: Annotated[Wanted, Meta(description="Only kinds in this state. Without it, all but muted ones.")] | None = (
        None
    )
    namespace: Annotated[Name, Meta(description="Only kinds that were seen in this namespace.")] = ""
    cluster: Annotated[Name, Meta(description="Only kinds that were seen in clusters of this name.")] = ""
    text: Annotated[Name, Meta(description="Only kinds with all of these words in title, place, rule or note.")] = ""


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that had a kind of failure."""

    namespace: str
    cluster: str
    session: str
    job: Annotated[str, Meta(description="Empty where it was outside of every job.")]
    started_at: datetime
    report: Annotated[str, Meta(description="Path of the page that says why it failed.")]


class ListedNote(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said last about a kind of failure."""

    at: datetime
    text: str
    is_muted: bool


class ListedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure: all that has the same fingerprint. Secrets are masked."""

    fingerprint: str
    title: Annotated[str, Meta(description="The error line of its last occurrence, in its original words.")]
    rule: Annotated[str, Meta(description="The kind of cause, by the name of the rule that found it.")]
    what: Annotated[str, Meta(description="To whom it happened last.")]
    where: Annotated[str, Meta(description="File and line, where they are known.")]
    state: Annotated[
        FailureState,
        Meta(description="`gone`: the last run of every script that had it went without. `regressed`: it is back."),
    ]
    first_at: datetime
    last_at: datetime
    runs: Annotated[int, Meta(description="Jobs, or sessions outside of any job, that had it.")]
    count: Annotated[int, Meta(description="Attempts, processes and requests that failed of it.")]
    is_recovered: Annotated[bool, Meta(description="A retry made all of it good, every time.")]
    clusters: Annotated[tuple[str, ...], Meta(description="Some of them, as `<namespace>/<cluster>`.")]
    cluster_count: int
    days: Annotated[tuple[int, ...], Meta(description="Runs that had it on each of the last 14 days, today last.")]
    note: ListedNote | None
    latest: ListedRun
    path: Annotated[str, Meta(description="Of its page on this server.")]


class FailuresAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the kinds of failure, the last seen first."""

    failures: tuple[ListedFailure, ...]
    found: Annotated[int, Meta(description="Kinds that are as wanted, on all pages.")]
    sessions: Annotated[int, Meta(description="Sessions whose failures are counted.")]
    unread: Annotated[
        int, Meta(description="Sessions that run, or that nobody has read yet; their failures are missing.")
    ]
    is_complete: Annotated[bool, Meta(description="Whether all sessions were looked at, as of some seconds ago.")]


class FailureAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure and the last runs that had it."""

    failure: ListedFailure
    runs: tuple[ListedRun, ...]


async def list_failures(call: Call[FailuresQuery]) -> FailuresAnswer:
    return failures_answer(await failures_within(call.history, _WAIT_SECONDS), call.query)


async def get_failure(call: Call[NoQuery]) -> FailureAnswer:
    return failure_answer(await failures_within(call.history, _WAIT_SECONDS), call.names["fingerprint"])


def failures_answer(known: KnownFailures, query: FailuresQuery) -> FailuresAnswer:
    """The kinds that the query asks for."""
    noted = ((kind, known.notes.get(kind.fingerprint)) for kind in known.kinds)
    wanted = [one for one in noted if _is_wanted(*one, query)]
    return FailuresAnswer(
        failures=tuple(listed_failure(*one) for one in wanted[query.start : query.start + query.limit]),
        found=len(wanted),
        sessions=known.sessions,
        unread=known.unread,
        is_complete=known.is_known and known.is_complete and not known.left_out,
    )


def failure_answer(known: KnownFailures, fingerprint: str) -> FailureAnswer:
    """One kind. Raises NotFound."""
    kind = next((kind for kind in known.kinds if kind.fingerprint == fingerprint), None)
    if kind is None:
        raise NotFound(f"no session has a failure with the fingerprint {fingerprint[:80]}")
    runs = tuple(map(listed_run, kind.newest))
    return FailureAnswer(failure=listed_failure(kind, known.notes.get(fingerprint)), runs=runs)


def _is_wanted(kind: FailureKind, note: FailureNote | None, query: FailuresQuery) -> bool:
    is_muted = note is not None and note.is_muted
    if is_muted != (query.state == "muted"):
        return False
    if query.state not in (None, "muted", kind.state.value):
        return False
    if (query.namespace or query.cluster) and not _is_in(kind.clusters, query.namespace, query.cluster):
        return False
    if not query.text:
        return True
    # By what is shown alone: a filter on what is masked would tell a secret letter by letter.
    shown = (kind.title, kind.what, kind.where, kind.rule, note.text if note else "")
    return has_words(query.text, *map(masked_text, shown))


def _is_in(clusters: Iterable[str], namespace: str, cluster: str) -> bool:
    names = (name.split("/", 1) for name in clusters)
    return any(namespace in ("", one) and cluster in ("", other) for one, other in names)


def listed_failure(kind: FailureKind, note: FailureNote | None) -> ListedFailure:
    return ListedFailure(
        fingerprint=kind.fingerprint,
        title=masked_text(kind.title),
        rule=kind.rule,
        what=masked_text(kind.what),
        where=kind.where,
        state=kind.state,
        first_at=kind.first_at,
        last_at=kind.last_at,
        runs=kind.runs,
        count=kind.count,
        is_recovered=kind.is_recovered,
        clusters=kind.clusters,
        cluster_count=kind.cluster_count,
        days=kind.days,
        note=listed_note(note),
        latest=listed_run(kind.newest[0]),
        path=failure_path(kind.fingerprint),
    )


def listed_note(note: FailureNote | None) -> ListedNote | None:
    """None where nothing is said any more."""
    if note is None or not (note.text or note.is_muted):
        return None
    return ListedNote(at=note.at, text=masked_text(note.text), is_muted=note.is_muted)


def listed_run(run: SeenRun) -> ListedRun:
    return ListedRun(
        namespace=run.session.namespace,
        cluster=run.session.cluster,
        session=run.session.session,
        job=run.job,
        started_at=run.at,
        report=report_path(run.session, run.job or None),
    )


FAILURE_OPERATIONS = (
    Operation(
        "list_failures", "/failures", "Kinds of failure of all sessions", FailuresQuery, FailuresAnswer, list_failures
    ),
    Operation("get_failure", "/failures/{fingerprint}", "One kind of failure", NoQuery, FailureAnswer, get_failure),
)
