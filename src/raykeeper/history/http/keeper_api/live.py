"""Ray's objects that exist in Kubernetes now, each with the way to its history."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.operation import Call, NoQuery, Operation, Query
from raykeeper.history.live_objects.model import (
    KINDS,
    LiveDetail,
    LiveKind,
    LiveObject,
    LiveObjectList,
    LiveProblem,
    LiveState,
    kind_named,
)
from raykeeper.history.query.history import History
from raykeeper.history.report.unstarted import session_of_rayjob
from raykeeper.history.store.kube_facts import incarnations_of
from raykeeper.history.urls import cluster_path, job_path, live_path, overview_path, rayjob_path, report_path
from raykeeper.layout.keys import SessionId

PAGE_ROWS, PAGE_LIMIT = 50, 500
_NAME_CHARS = 300  # names in Kubernetes have at most 253
_HISTORY_SECONDS = 2.0
"""For the ways from the objects of one page to their history: a slow store costs links, not the page."""
_LOOKED_UP_AT_ONCE = 16
OFF = LiveProblem(
    cause="off",
    words="This server is not connected to Kubernetes: start it with --live-objects=on, in a pod or with --kubeconfig",
)
Name = Annotated[str, Meta(max_length=_NAME_CHARS)]


class LiveQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which objects are wanted."""

    kind: Annotated[LiveKind, Meta(description="Only objects of this kind.")] | None = None
    namespace: Annotated[Name, Meta(description="Only objects of this namespace.")] = ""
    state: Annotated[LiveState, Meta(description="Only objects in this state.")] | None = None
    text: Annotated[Name, Meta(description="Only objects with all of these words in their names.")] = ""
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="Objects of one page.")] = PAGE_ROWS
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="Objects before this page.")] = 0


class HistoryLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where the history of an object is on this server; empty where nothing was stored yet."""

    session: Annotated[str, Meta(description="Its newest session at a glance.")] = ""
    job: Annotated[str, Meta(description="The job of a RayJob.")] = ""
    report: Annotated[str, Meta(description="Why it failed, or why it never started.")] = ""


class ListedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object with its ways."""

    object: LiveObject
    path: Annotated[str, Meta(description="Of the page about it.")]
    history: HistoryLinks


class LiveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that exist, the newest first."""

    objects: tuple[ListedObject, ...]
    found: Annotated[int, Meta(description="Objects that are as wanted, on all pages.")]
    counts: Annotated[dict[str, int], Meta(description="All objects by kind, whatever is wanted.")]
    namespaces: Annotated[tuple[str, ...], Meta(description="Namespaces that have objects.")]
    as_of: Annotated[datetime, Meta(description="When Kubernetes was asked.")]
    is_complete: Annotated[bool, Meta(description="Whether all objects that exist were read.")]
    problems: tuple[LiveProblem, ...]


class LiveDetailAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One object, its pods and Events, and its ways."""

    detail: LiveDetail
    history: HistoryLinks


async def find_live_objects(history: History, query: LiveQuery) -> LiveAnswer:
    """What exists now and is as wanted."""
    known = await _known(history)
    words = query.text.lower().split()
    wanted = [
        one
        for one in known.objects
        if (query.kind is None or one.kind == query.kind)
        and query.namespace in ("", one.namespace)
        and (query.state is None or one.state == query.state)
        and all(word in one.name.lower() for word in words)
    ]
    page = wanted[query.offset : query.offset + query.limit]
    links = await _links_of_all(history, page)
    return LiveAnswer(
        objects=tuple(
            ListedObject(object=one, path=live_path(one.kind, one.namespace, one.name), history=ways)
            for one, ways in zip(page, links, strict=True)
        ),
        found=len(wanted),
        counts={kind: number for kind in KINDS if (number := Counter(one.kind for one in known.objects)[kind])},
        namespaces=tuple(sorted({one.namespace for one in known.objects})),
        as_of=known.as_of,
        is_complete=known.is_complete,
        problems=known.problems,
    )


async def _known(history: History) -> LiveObjectList:
    if history.live_objects is None:
        return LiveObjectList(objects=(), as_of=history.clock.now(), is_complete=False, problems=(OFF,))
    return await history.live_objects.all()


async def _links_of_all(history: History, objects: list[LiveObject]) -> list[HistoryLinks]:
    slots = asyncio.Semaphore(_LOOKED_UP_AT_ONCE)

    async def links_of(one: LiveObject) -> HistoryLinks:
        async with slots:
            return await history_links(history, one)

    asked = [asyncio.ensure_future(links_of(one)) for one in objects]
    if asked:
        await asyncio.wait(asked, timeout=_HISTORY_SECONDS)
    for slow in asked:
        slow.cancel()
    return [task.result() if task.done() and not task.cancelled() else HistoryLinks() for task in asked]


async def history_links(history: History, one: LiveObject) -> HistoryLinks:
    """The ways to what is stored of an object; without those where the store cannot tell."""
    try:
        if one.kind == "RayJob":
            return await _links_of_rayjob(history, one)
        session = await history.catalog.newest_of_cluster(one.namespace, one.clusters[0]) if one.clusters else None
        if session is None and one.kind == "RayCluster":
            has_facts = await incarnations_of(history.catalog.store, one.namespace, one.name)
            return HistoryLinks(report=cluster_path(one.namespace, one.name) if has_facts else "")
    except RaykeeperError:
        return HistoryLinks()
    return HistoryLinks(session=overview_path(session), report=report_path(session)) if session else HistoryLinks()


async def _links_of_rayjob(history: History, one: LiveObject) -> HistoryLinks:
    found = await session_of_rayjob(history, one.namespace, one.name)
    if not isinstance(found, SessionId):
        return HistoryLinks(report=rayjob_path(one.namespace, one.name))
    return HistoryLinks(
        session=overview_path(found), job=job_path(found, one.name), report=report_path(found, one.name)
    )


async def find_live_object(history: History, kind: str, namespace: str, name: str) -> LiveDetailAnswer | LiveProblem:
    """The object, or why it cannot be read. Raises NotFound."""
    known = kind_named(kind)
    if known is None:
        raise NotFound(f"there is no kind {kind[:_NAME_CHARS]!r}; there are: {', '.join(one.lower() for one in KINDS)}")
    if history.live_objects is None:
        return OFF
    found = await history.live_objects.find(known, namespace, name)
    if found is None:
        raise NotFound(f"there is no {known} {namespace}/{name} in Kubernetes now")
    if isinstance(found, LiveProblem):
        return found
    return LiveDetailAnswer(detail=found, history=await history_links(history, found.object))


async def _list(call: Call[LiveQuery]) -> LiveAnswer:
    return await find_live_objects(call.history, call.query)


async def _get(call: Call[NoQuery]) -> LiveDetailAnswer:
    names = call.names
    found = await find_live_object(call.history, names["kind"], names["namespace"], names["name"])
    if found is OFF:
        raise NotFound("this server is not connected to kubernetes")
    if isinstance(found, LiveProblem):
        raise Unavailable("kubernetes", f"{found.words[:1].lower()}{found.words[1:]}")
    return found


LIVE_OPERATIONS = (
    Operation("list_live_objects", "/live", "Ray's objects that exist in Kubernetes now", LiveQuery, LiveAnswer, _list),
    Operation(
        "get_live_object",
        "/live/{kind}/{namespace}/{name}",
        "One object that exists now, with its conditions, pods and Events",
        NoQuery,
        LiveDetailAnswer,
        _get,
    ),
)
