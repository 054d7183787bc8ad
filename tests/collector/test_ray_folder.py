"""Ray's folder is user code's: what is opened below it is a regular file, by no link, without waiting."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import raykeeper.collector
from collector.ray_folders import a_session, written
from raykeeper.collector import rayfolder
from raykeeper.collector.rayfolder import LAST_NS, LogTree, NotOurs, ray_session

COLLECTOR = Path(raykeeper.collector.__file__).parent
THE_MODULE = "rayfolder.py"
OWN_FILES = {
    "events/disk.py",
    "events/durable.py",
    "events/sealed.py",
    "events/sealing.py",
    "events/spool.py",
    "logs/positions.py",
    "raylet_socket.py",
    "samples/journal.py",
    "samples/machine.py",
    "spoolfolder.py",
}
"""What opens files of the collector's own, in its spool, or the kernel's."""
LINK = "Too many levels of symbolic links|Not a directory"  # the kernel's words for a file and for a folder
TOUCHES = {
    "open", "scandir", "listdir", "stat", "lstat", "readlink", "read_bytes", "read_text", "iterdir", "glob", "rglob",
    "exists", "is_dir", "is_file", "walk", "unlink", "mkdir", "mmap",
}  # fmt: skip


def _touching(path: Path) -> set[str]:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return names & TOUCHES


def test_no_other_module_of_the_collector_opens_anything_below_rays_folder() -> None:
    modules = {path.relative_to(COLLECTOR).as_posix(): _touching(path) for path in COLLECTOR.rglob("*.py")}
    touching = {name for name, calls in modules.items() if calls}
    assert touching - OWN_FILES == {THE_MODULE}


def test_no_step_down_follows_a_link(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    written(tmp_path / "outside" / "token", b"secret")
    (session / "logs" / "sub").symlink_to(tmp_path / "outside")
    (session / "logs" / "token").symlink_to(tmp_path / "outside" / "token")
    tree = LogTree(session)
    for path in ("token", "sub/token"):
        with pytest.raises(OSError, match=LINK):
            tree.open_file(path)
    tree.close()
    (session / "logs").rename(session / "gone")
    (session / "logs").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=LINK):
        LogTree(session).open_file("token")
    (tmp_path / "session_x").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=LINK), ray_session(tmp_path / "session_x"):
        pass


def test_what_is_no_regular_file_is_not_read_and_nothing_waits(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    os.mkfifo(session / "fifo")
    with ray_session(session) as folder:
        for name in ("fifo", "logs"):
            with pytest.raises(NotOurs):
                folder.read(name, 10)


def test_no_more_is_read_or_listed_than_was_asked_for(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    with (session / "large").open("wb") as file:
        file.truncate(1 << 40)
    with ray_session(session) as folder:
        assert folder.read("large", 100).data == bytes(100)
        listing = folder.list(1)
    assert (len(listing.entries), listing.is_cut) == (1, True)


def test_a_time_beyond_the_calendar_counts_as_the_last_one(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    os.utime(session / "logs", (300_000_000_000, 300_000_000_000))
    with ray_session(session) as folder:
        assert folder.changed_ns("logs") == LAST_NS


def test_a_tree_holds_few_folders_open_and_goes_only_so_deep(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    for number in range(3 * rayfolder.MAX_OPEN_FOLDERS):
        written(session / "logs" / str(number) / "a", b"x")
    tree, before = LogTree(session), _descriptors()
    for number in range(3 * rayfolder.MAX_OPEN_FOLDERS):
        assert tree.status(f"{number}/a").st_size == 1
    assert _descriptors() <= before + rayfolder.MAX_OPEN_FOLDERS
    tree.close()
    assert _descriptors() == before
    with pytest.raises(OSError, match="folders deep"):
        LogTree(session).status("a/" * 40 + "b")


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
