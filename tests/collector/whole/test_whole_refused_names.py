"""Names that a real store refuses for good: what has one is set aside and told, and everything else arrives."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from bed.errors import BedError
from bed.minio import Minio
from bed.seaweedfs import SeaweedFS
from bed.waiting import wait_until
from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session, written
from collector.whole.hostile import HONEST_LOG, TEAM, Neighbourhood
from collector.whole.minio_collectors import AWAY, stored_log
from raykeeper.layout.keys import SessionId, end_record_key, node_record_key
from raykeeper.layout.records import EndRecord, decode_record
from support.collector_processes import CollectorProcess, ended
from support.collector_stores import objects_in, s3_environment
from support.event_scene import stored_events
from support.ray_event_batches import EventMaker, body_of, line_of

pytestmark = pytest.mark.bed

LONGEST_KEY_BYTES = 1024  # of S3
LONG_SESSION = "session_" + "x" * 120
HONEST_KEY_BYTES = 200
"""At most: keys of the honest session fit, those of one whose name is a hundred bytes longer do not."""
REFUSED_SECONDS = 30.0  # usually one


def a_root() -> str:
    """A prefix below which only keys of short sessions fit."""
    part = "r" * 99
    return "/".join([f"names-{os.urandom(4).hex()}", *[part] * ((LONGEST_KEY_BYTES - HONEST_KEY_BYTES - 16) // 100)])


@pytest.fixture(params=["minio", "seaweedfs"])
def server(request: pytest.FixtureRequest) -> Minio | SeaweedFS:
    found: Minio | SeaweedFS = request.getfixturevalue(request.param)
    return found


async def test_a_session_whose_names_are_too_long_stops_nothing(server: Minio | SeaweedFS, tmp_path: Path) -> None:
    root, bucket = a_root(), f"names-{os.urandom(4).hex()}"
    server.s3.put(f"/{bucket}")
    there = Neighbourhood(
        tmp_path, f"--storage-root-dir={root}", store="--storage-backend=s3", environment=s3_environment(server, bucket)
    )
    hostile = a_session(there.ray, LONG_SESSION)
    a_port_file(hostile, NODE_B)
    written(hostile / "logs" / HONEST_LOG, b"of a session that no store can hold\n")
    (there.ray / "session_latest").unlink()
    (there.ray / "session_latest").symlink_to(f"/tmp/ray/{SESSION}")
    odd, kept = EventMaker(seed=1, session=LONG_SESSION, node=NODE_B), list[bytes]()
    with ended(there.collector):
        there.collector.start()
        for _ in range(4):
            assert await there.post(body_of(odd.events(20))) == 200
            events = there.maker.events(20)
            assert await there.post(body_of(events)) == 200
            kept += map(line_of, events)
            there.say(b"an honest line\n")
            await asyncio.sleep(0.6)  # each round is a segment of its own
        is_refused = await asyncio.to_thread(has_refused, there.collector)
        await asyncio.to_thread(wait_until, "it beats", lambda: there.collector.metric("heartbeats_total") > 0)
        is_up = there.collector.metric("bucket_up")
        code = there.collector.end()
    objects = await objects_in(server, bucket, root)
    assert Counter(stored_events(objects, SESSION)) == Counter(kept)
    assert stored_log(only(objects, TEAM), HONEST_LOG) == b"an honest line\n" * 4
    assert node_record_key(TEAM, NODE_A) in objects
    end = decode_record(objects[end_record_key(TEAM, NODE_A)], EndRecord)
    assert end.missing_logs == ()
    assert is_up == 1
    assert there.collector.said(AWAY) == []
    print(f"refused: {is_refused}, exit code {code}, {len(objects)} objects")
    if is_refused:
        assert there.collector.said("an object is refused for good, the others go on")
        assert code == 1
        assert not any(LONG_SESSION in key for key in objects if "/events/" in key or "/logs/" in key)
    else:
        assert len(stored_events(objects, LONG_SESSION)) == 80


def has_refused(collector: CollectorProcess) -> bool:
    """Whether an object is set aside within some seconds; a store that takes longer names than S3 never refuses one."""
    try:
        return bool(
            wait_until("one is refused", lambda: collector.metric("objects_refused_total") > 0, REFUSED_SECONDS)
        )
    except BedError:
        return False


def only(objects: dict[str, bytes], session: SessionId) -> dict[str, bytes]:
    return {key: data for key, data in objects.items() if key.startswith(session.prefix)}
