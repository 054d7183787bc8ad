"""Polled answers that are nested deeper than any reader goes: they cost their own session an answer, and no error."""

from __future__ import annotations

from pathlib import Path

import msgspec

from history.hostile.attacked_server import attacked_server, put_ended_session
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import PolledAnswer
from raykeeper.storage.store import ObjectStore
from support.history_scene import STARTED_AT, local_store, session_url

GROUPS = "/api/v0/placement_groups?detail=1&limit=10000"
POLLED = ("/api/jobs/", "/nodes?view=summary", GROUPS, "/api/serve/applications/", "/api/cluster_status")
PAGES: tuple[str, ...] = (
    "",
    "/report",
    "/api/jobs/",
    "/nodes?view=summary",
    "/api/v0/placement_groups",
    "/api/v0/nodes",
)
PAGES += ("/api/serve/applications/", "/logical/actors", "/api/cluster_status", "/api/v0/tasks")
DEPTHS = (100_000, 990, 950, 900, 500, 150)  # readers of JSON stop somewhere below a thousand
OPENINGS = {"lists": (b"[", b"]"), "members": (b'{"data":', b"}")}


def nested(depth: int, shape: str) -> bytes:
    opening, closing = OPENINGS[shape]
    return opening * depth + b"1" + closing * depth


async def put_answers(store: ObjectStore, session: SessionId, hostile: bytes, *, is_newest: bool) -> None:
    """For every path a hostile answer and an empty one, in either order."""
    bodies = [b"{}", hostile] if is_newest else [hostile, b"{}"]
    for path in POLLED:
        for number, body in enumerate(bodies):
            answer = PolledAnswer(path=path, polled_at=STARTED_AT, status=200, body=msgspec.Raw(body))
            await store.put(PolledKey(session, path, 10**12 + number).key, encode_polled(answer))


async def test_answers_nested_however_deep_are_no_errors(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    hostile = [
        (SessionId("attacker", f"{shape}-{depth}-{order}", "session_2026-11-15_20-00-00_000000_6"), shape, depth, order)
        for shape in OPENINGS
        for depth in DEPTHS
        for order in ("newest", "older")
    ]
    for session, shape, depth, order in hostile:
        await put_ended_session(store, session, tasks=1)
        await put_answers(store, session, nested(depth, shape), is_newest=order == "newest")
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        paths = [session_url(session) + page for session, *_ in hostile for page in PAGES]
        answered = {path: (await server.get(path))[0] for path in [*paths, "/jobs", "/api/keeper/v1/jobs", "/"]}
    assert {path: status for path, status in answered.items() if status == 500} == {}
