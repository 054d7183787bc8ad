"""A capture on the machine of the head, whose logs are read from disk: it depends on no capture before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from collector.ray_folders import NODE_A, a_port_file, a_session, written
from ray_head.scripted_head import SESSION, ScriptedHead, scripted
from raykeeper.collector.capture.pages import KINDS, Page
from raykeeper.collector.capturing import capture_once
from raykeeper.collector.sources import read_settings
from raykeeper.layout.keys import SessionId
from support.stored_sessions import StoredSession

EARLIER = "session_2026-11-01_08-00-00_000000_5"
TEXT = b"said by a task\n"
NODES = [{"node_id": NODE_A, "is_head_node": True, "state": "ALIVE", "node_ip": "10.0.0.1"}]


def listed(rows: list[Any]) -> Any:
    return {"data": {"result": {"result": rows, "partial_failure_warning": ""}}}


@pytest.fixture
async def address() -> AsyncIterator[str]:
    head = ScriptedHead()
    for path in ("/api/v0/cluster_metadata", "/timezone", "/cluster_id"):
        head.say(path, {})
    head.say("/api/v0/special", {"kept": True})
    for kind in KINDS:
        head.say(Page(kind).path, listed(NODES if kind == "nodes" else []))
    async with scripted(head) as url:
        yield url


@pytest.fixture
def root(tmp_path: Path) -> Path:
    session = a_session(tmp_path / "ray", SESSION)
    a_port_file(session, NODE_A)
    written(session / "logs" / "worker-1-01000000-9.out", TEXT)
    return tmp_path / "ray"


def names_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


async def captured(root: Path, address: str, store: Path, *flags: str) -> StoredSession:
    own = ["--once", "--ray-cluster-name=demo", f"--ray-tmp-root={root}", f"--ray-dashboard-address={address}"]
    settings = read_settings([*own, f"--store-url=file://{store}", *flags], {})
    assert await capture_once(settings, {}) == 0
    return StoredSession(store, SessionId("local", "demo", SESSION))


async def test_a_second_capture_into_another_store_has_the_logs_too(
    tmp_path: Path, root: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("tried", "wanted"):
        stored = await captured(root, address, tmp_path / name)
        assert stored.logs(NODE_A) == {"worker-1-01000000-9.out": TEXT}
        assert f"1 log files of {len(TEXT)} bytes" in capsys.readouterr().err


async def test_a_repeated_capture_into_one_store_shows_every_file_once(
    tmp_path: Path, root: Path, address: str
) -> None:
    await captured(root, address, tmp_path / "store")
    written(root / SESSION / "logs" / "worker-1-01000000-9.out", TEXT * 2)
    stored = await captured(root, address, tmp_path / "store")
    assert stored.logs(NODE_A) == {"worker-1-01000000-9.out": TEXT * 2}


async def test_sessions_of_the_past_are_not_the_one_that_is_captured(
    tmp_path: Path, root: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(root / EARLIER / "logs" / "worker-1-01000000-9.out", b"said long ago\n")
    await captured(root, address, tmp_path / "store")
    assert "1 log files of" in capsys.readouterr().err
    assert not (tmp_path / "store" / "v1" / "data" / "local" / "demo" / EARLIER).exists()


async def test_a_capture_leaves_nothing_in_rays_folder(tmp_path: Path, root: Path, address: str) -> None:
    before = names_below(root)
    await captured(root, address, tmp_path / "store")
    assert names_below(root) == before


async def test_paths_that_the_user_added_are_captured_too(tmp_path: Path, root: Path, address: str) -> None:
    stored = await captured(root, address, tmp_path / "store", "--additional-endpoints=/api/v0/special")
    assert stored.polled("/api/v0/special") == [{"kept": True}]
