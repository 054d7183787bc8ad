"""RayJobs by their names, whether or not anything of them ever ran."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from raykeeper.history.http.keeper_api.operation import Call, NoQuery, Operation, Query
from raykeeper.history.http.keeper_api.overview import report_of
from raykeeper.history.report.model import Report
from raykeeper.history.report.unstarted import report_on_rayjob, session_of_rayjob, why_without_cluster
from raykeeper.history.store.unstarted_rayjobs import MOST_LISTED
from raykeeper.history.urls import rayjob_path
from raykeeper.layout.rayjobs import RayJobRecord

LIST_ROWS, LIST_LIMIT = 50, MOST_LISTED
_WAIT_SECONDS = 10.0
"""For the first look at a store with very many RayJobs; the next request finds what it found."""


class UnstartedRayJobsQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many are wanted."""

    limit: Annotated[int, Meta(ge=1, le=LIST_LIMIT, description="RayJobs to be listed, the newest first.")] = LIST_ROWS


class ListedRayJob(msgspec.Struct, frozen=True, kw_only=True):
    """A RayJob that never had a cluster."""

    namespace: str
    rayjob: str
    created_at: datetime | None
    state: Annotated[str, Meta(description="`jobDeploymentStatus` as it was last seen.")]
    cause: Annotated[str, Meta(description="Why there is no cluster, or what it waits for.")]
    path: Annotated[str, Meta(description="Of the page that says more.")]


class UnstartedRayJobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """RayJobs that Kubernetes told of and that never had a cluster, the newest first."""

    rayjobs: tuple[ListedRayJob, ...]
    is_complete: Annotated[bool, Meta(description="Whether these are all, as of a minute ago.")]


async def _list_unstarted(call: Call[UnstartedRayJobsQuery]) -> UnstartedRayJobsAnswer:
    known = await call.history.catalog.unstarted_rayjobs.known_within(_WAIT_SECONDS)
    listed = tuple(map(listed_rayjob, known.newest[: call.query.limit]))
    return UnstartedRayJobsAnswer(rayjobs=listed, is_complete=known.is_complete and len(listed) == known.count)


def listed_rayjob(record: RayJobRecord) -> ListedRayJob:
    """A RayJob in one line."""
    return ListedRayJob(
        namespace=record.namespace,
        rayjob=record.name,
        created_at=record.created_at,
        state=record.last.deployment_status if record.last else "",
        cause=why_without_cluster(record),
        path=rayjob_path(record.namespace, record.name),
    )


async def get_rayjob_report(call: Call[NoQuery]) -> Report:
    namespace, rayjob = call.names["namespace"], call.names["rayjob"]
    found = await session_of_rayjob(call.history, namespace, rayjob)
    if isinstance(found, RayJobRecord):
        return await report_on_rayjob(call.history.catalog.store, found)
    return await report_of(await call.history.open(found), rayjob)


RAYJOB_OPERATIONS = (
    Operation(
        "list_unstarted_rayjobs",
        "/rayjobs/unstarted",
        "RayJobs that never got a cluster",
        UnstartedRayJobsQuery,
        UnstartedRayJobsAnswer,
        _list_unstarted,
    ),
    Operation(
        "get_rayjob_report",
        "/rayjobs/{namespace}/{rayjob}/report",
        "Why a RayJob failed, or never ran, by its name",
        NoQuery,
        Report,
        get_rayjob_report,
    ),
)
