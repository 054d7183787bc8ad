"""A collector that is another user than Ray, in a container whose only writable place is the shared volume."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.ports import free_port
from bed.waiting import wait_until
from collector.ray_folders import NODE_A, SESSION, a_session, raylet_text, written
from raykeeper.layout.keys import SessionId
from support.collector_processes import COMMAND, CollectorProcess, ended
from support.stored_sessions import StoredSession

RAY, COLLECTOR = 1000, 65532
AS_COLLECTOR = ("setpriv", f"--reuid={COLLECTOR}", f"--regid={COLLECTOR}", "--clear-groups")
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind / && exec "$@"'
"""Only what is mounted on its own stays writable: the volume, and what the machine mounts itself."""


def why_not() -> str:
    """Why this machine cannot show it; empty if it can."""
    if os.geteuid() != 0:
        return "other users and mounts need root"
    tried = subprocess.run([*AS_COLLECTOR, sys.executable, "-c", "import raykeeper"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "another user cannot read this Python environment"


pytestmark = [pytest.mark.bed, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture
def volume() -> Iterator[Path]:
    """As an emptyDir: anybody may make files in it. Outside of pytest's own folder, which is root's alone."""
    with tempfile.TemporaryDirectory(prefix="rk-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def owned(path: Path, mode: int) -> None:
    os.chown(path, RAY, RAY)
    path.chmod(mode)


def test_readable_files_are_shipped_and_unreadable_ones_told(volume: Path, tmp_path: Path) -> None:
    root = volume / "some" / "where"
    session = a_session(root)
    logs = session / "logs"
    readable = {"worker-1-01000000-7.out": b"said by a task\n", "raylet.out": raylet_text(NODE_A)}
    for name, data in readable.items():
        owned(written(logs / name, data), 0o644)
    owned(written(logs / "worker-2-01000000-8.out", b"nobody else may read this\n"), 0o600)
    written(logs / "private" / "some.log", b"nor this\n")
    owned(logs / "private", 0o700)
    for folder in (root, session, logs):
        owned(folder, 0o755)
    spool, store = volume / "spool", volume / "store"
    for folder in (spool, store):
        folder.mkdir()
        os.chown(folder, COLLECTOR, COLLECTOR)
    enter = ("unshare", "--mount", "--propagation=private", "sh", "-c", READ_ONLY, str(volume))
    flags = ["--ray-cluster-name=demo", f"--events-port={free_port()}", "--metrics-addr=127.0.0.1:0"]
    flags += [f"--store-url=file://{store}", f"--event-data-dir={spool}", "--user-log-interval=200ms"]
    environment = {"RAY_TMP_ROOT": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    collector = CollectorProcess(tmp_path / "collector.log", flags, environment, (*enter, *AS_COLLECTOR, *COMMAND))
    with ended(collector):
        collector.start().wait_for("node found")
        wait_until("both are told", lambda: len(collector.said("log cannot be read")) == 2)
        told = {line["path"] for line in collector.said("log cannot be read")}
        assert told == {"worker-2-01000000-8.out", "private/"}
        assert collector.metric("log_read_errors_total") == 2
        assert collector.end() == 1  # something was left behind
    stored = StoredSession(store, SessionId("local", "demo", SESSION))
    assert stored.logs(NODE_A) == readable
    end = stored.end(NODE_A)
    assert end is not None
    assert [(log.path, log.length) for log in end.missing_logs] == [("worker-2-01000000-8.out", 26)]


def test_a_spool_that_cannot_be_written_stops_it_by_name(volume: Path, tmp_path: Path) -> None:
    volume.chmod(0o755)
    flags = ["--ray-cluster-name=demo", f"--store-url=file://{tmp_path}", f"--events-port={free_port()}"]
    environment = {"RAY_TMP_ROOT": str(volume), "PYTHONDONTWRITEBYTECODE": "1"}
    collector = CollectorProcess(tmp_path / "collector.log", flags, environment, (*AS_COLLECTOR, *COMMAND))
    with ended(collector):
        assert collector.start().wait() == 2
    assert f"'{volume}/event-data' cannot be used: it must be writable" in collector.output.read_text()
