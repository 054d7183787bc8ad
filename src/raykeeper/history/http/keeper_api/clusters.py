"""Clusters whose head never started: all that is known of them is what Kubernetes said."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.operation import Call, NoQuery, Operation, Query
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Report
from raykeeper.history.report.unstarted import report_on_unstarted
from raykeeper.history.urls import cluster_path

LIST_ROWS, LIST_LIMIT = 50, 500
_WAIT_SECONDS = 10.0
"""For the first look at a store with very many clusters; the next request finds what it found."""


class UnstartedQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many are wanted."""

    limit: Annotated[int, Meta(ge=1, le=LIST_LIMIT, description="Clusters to be listed, the newest first.")] = LIST_ROWS


class ListedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that has no session."""

    namespace: str
    cluster: str
    first_at: Annotated[datetime, Meta(description="When Kubernetes was first heard about it.")]
    path: Annotated[str, Meta(description="Of the page that says why it did not start.")]


class UnstartedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters that Kubernetes told of and that have no session, the newest first."""

    clusters: tuple[ListedCluster, ...]
    is_complete: Annotated[bool, Meta(description="Whether these are all, as of a minute ago.")]


async def _list_unstarted(call: Call[UnstartedQuery]) -> UnstartedAnswer:
    known = await call.history.catalog.unstarted.known_within(_WAIT_SECONDS)
    listed = tuple(
        ListedCluster(
            namespace=one.namespace,
            cluster=one.cluster,
            first_at=one.first_at,
            path=cluster_path(one.namespace, one.cluster),
        )
        for one in known.found[: call.query.limit]
    )
    return UnstartedAnswer(clusters=listed, is_complete=known.is_complete and len(listed) == len(known.found))


async def get_cluster_report(call: Call[NoQuery]) -> Report:
    namespace, cluster = call.names["namespace"], call.names["cluster"]
    if session := await call.history.catalog.newest_of_cluster(namespace, cluster):
        raise NotFound(f"cluster {namespace}/{cluster} did start: ask for the report of its session {session.session}")
    return await report_of_unstarted(call.history, namespace, cluster)


async def report_of_unstarted(history: History, namespace: str, cluster: str) -> Report:
    """Of a cluster without a session. Raises NotFound where Kubernetes said nothing about one."""
    report = await report_on_unstarted(history.catalog.store, namespace, cluster)
    if report is None:
        raise NotFound(f"nothing is known of a cluster {namespace}/{cluster}")
    return report


CLUSTER_OPERATIONS = (
    Operation(
        "list_unstarted_clusters",
        "/clusters/unstarted",
        "Clusters that never got a session",
        UnstartedQuery,
        UnstartedAnswer,
        _list_unstarted,
    ),
    Operation(
        "get_cluster_report",
        "/clusters/{namespace}/{cluster}/report",
        "Why a cluster never got a session",
        NoQuery,
        Report,
        get_cluster_report,
    ),
)
