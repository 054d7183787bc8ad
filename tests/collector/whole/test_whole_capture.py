"""`collector --once` as a process: what a user who waits for it hears when the store is away or refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bed.minio import Minio
from bed.ports import free_port
from ray_head.scripted_head import ScriptedHead, scripted
from support.collector_processes import CollectorProcess, ended
from support.collector_stores import objects_in, s3_environment

pytestmark = pytest.mark.bed


async def captured(folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a capture of a small cluster."""
    head = ScriptedHead()
    for kind in ("jobs", "nodes", "tasks", "actors", "workers", "placement_groups", "objects", "runtime_envs"):
        answer = {"result": True, "data": {"result": {"result": [], "partial_failure_warning": ""}}}
        head.say(f"/api/v0/{kind}?detail=1&limit=10000", answer)
    for fact in ("/api/v0/cluster_metadata", "/timezone", "/cluster_id"):
        head.say(fact, {})
    async with scripted(head) as address:
        flags = ["--once", "--ray-cluster-name=demo", f"--ray-dashboard-address={address}"]
        own = {"RAY_TMP_ROOT": str(folder / "ray")}
        collector = CollectorProcess(folder / "capture.log", flags, environment | own)
        with ended(collector):
            code = await asyncio.to_thread(collector.start().wait, 60.0)
    return code, collector.output.read_text()


async def test_a_capture_stores_what_the_dashboard_says(tmp_path: Path, minio: Minio, bucket: str) -> None:
    code, said = await captured(tmp_path, s3_environment(minio, bucket))
    assert code == 0, said
    assert any(key.endswith("/session.json") for key in await objects_in(minio, bucket))


async def test_a_store_that_refuses_ends_a_capture_with_one_line(tmp_path: Path, minio: Minio, bucket: str) -> None:
    environment = s3_environment(minio, bucket) | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    code, said = await captured(tmp_path, environment)
    assert code == 1
    assert f"raykeeper: s3://{bucket}" in said
    assert "was refused" in said
    assert "Traceback" not in said


async def test_a_store_that_is_away_ends_a_capture_with_one_line(tmp_path: Path, minio: Minio, bucket: str) -> None:
    environment = s3_environment(minio, bucket, f"http://127.0.0.1:{free_port()}")
    code, said = await captured(tmp_path, environment)
    assert code == 1
    assert "could not be reached" in said
    assert "Traceback" not in said
