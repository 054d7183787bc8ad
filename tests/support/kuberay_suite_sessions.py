"""The recorded run as a dead and as a running session, for a client that asks as KubeRay's end-to-end tests do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from raykeeper.layout.keys import end_record_key
from raykeeper.layout.records import EndRecord, encode_record
from support.ingest_scene import local_store
from support.kuberay_buckets import OPENED_NS, PLAIN, KubeRayBucket
from support.kuberay_client import KubeRayClient, kuberay_client
from support.raycapture import ASKED_AT, NODES, SESSION, RayCapture, put_into
from support.whole_history import built_server

Layout = Literal["ours", "kuberays"]
LAYOUTS: tuple[Layout, ...] = ("ours", "kuberays")

_ANSWERS = (
    "/timezone",
    "/api/v0/cluster_metadata",
    "/api/v0/placement_groups?detail=1&limit=10000",
    "/api/serve/applications/",
)


async def fill_bucket(folder: Path, layout: Layout, capture: RayCapture, *, is_over: bool) -> None:
    """The run as either collector leaves it."""
    await (_put_ours(folder, capture, is_over) if layout == "ours" else _put_kuberays(folder, capture))


@asynccontextmanager
async def entered(folder: Path, session: str) -> AsyncIterator[KubeRayClient]:
    """A client that entered the session in that bucket."""
    cache = folder / "cache"
    cache.mkdir(exist_ok=True)
    async with built_server(folder / "bucket", cache) as app, kuberay_client(app) as client:
        path = f"/enter_cluster/{SESSION.namespace}/raycluster/{SESSION.cluster}/{session}"
        assert (await client.json(path))["session"] == session
        yield client


async def _put_ours(folder: Path, capture: RayCapture, is_over: bool) -> None:
    store = local_store(folder / "bucket")
    await put_into(store, capture, "final")
    for node in NODES if is_over else ():
        end = EndRecord(
            node_id=node.node_id, role=node.folder, ended_at=ASKED_AT["final"], reason="SIGTERM", is_complete=True
        )
        await store.put(end_record_key(SESSION, node.node_id), encode_record(end))


async def _put_kuberays(folder: Path, capture: RayCapture) -> None:
    bucket = KubeRayBucket(local_store(folder / "bucket"), PLAIN)
    await bucket.put_marker()
    answers = {recorded.path: recorded.body for recorded in capture.requests("final")}
    for number, node in enumerate(NODES):
        events = capture.events(node, ASKED_AT["final"])
        await bucket.put_events(node.node_id, events, opened_ns=OPENED_NS + number * 10**9)
        await bucket.put_logs(node.node_id, capture.log_files(node))
    for path in _ANSWERS:
        await bucket.put_answer(path, answers[path])
