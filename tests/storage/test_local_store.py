"""A local folder as a store: durable, never torn, create-only between processes."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.errors import ObjectMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.local.localstore import INCOMING, LocalStore

CREATOR = """
import asyncio, sys
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL

async def main():
    store = LocalStore(StoreSettings(LOCAL, sys.argv[1]))
    sys.stdin.readline()
    print([await store.create(f"manifests/{n}.json", sys.argv[2].encode()) for n in range(50)])

asyncio.run(main())
"""
ENDLESS_WRITER = """
import asyncio, sys
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL

async def main():
    store = LocalStore(StoreSettings(LOCAL, sys.argv[1]))
    for number in range(1_000_000):
        await store.put("object", bytes([number % 256]) * 300_000)

asyncio.run(main())
"""


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(StoreSettings(LOCAL, str(tmp_path / "store"), "root"))


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
async def test_a_folder_without_links_creates_objects_only_once_too(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(error, "not on this file system")

    def no_sync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - a descriptor
            raise OSError(errno.EINVAL, "not on this file system")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(os, "fsync", no_sync)
    answers = await asyncio.gather(*(store.create("a/session.json", bytes([number])) for number in range(5)))
    assert sorted(answers) == [False] * 4 + [True]
    assert await store.get("a/session.json") == bytes([answers.index(True)])


def test_of_racing_processes_exactly_one_creates_each_object(tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CREATOR, str(tmp_path), name]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    rivals = [start("one"), start("two")]
    one, two = (rival.communicate("go\n", timeout=60)[0] for rival in rivals)
    won_by_one, won_by_two = (text.strip().strip("[]").split(", ") for text in (one, two))
    assert [sorted(pair) for pair in zip(won_by_one, won_by_two, strict=True)] == [["False", "True"]] * 50


def test_a_killed_writer_leaves_a_whole_object(tmp_path: Path) -> None:
    target = tmp_path / "object"
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS_WRITER, str(tmp_path)])
        deadline = time.monotonic() + 30
        began = target.stat().st_ino if target.exists() else None
        while not target.exists() or target.stat().st_ino == began:
            assert time.monotonic() < deadline
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        content = target.read_bytes()
        assert content == content[:1] * 300_000


async def test_what_a_killed_writer_left_is_removed_a_day_later(store: LocalStore, tmp_path: Path) -> None:
    incoming = tmp_path / "store" / INCOMING
    incoming.mkdir(parents=True)
    for name, age in (("old", 25 * 3600), ("new", 60)):
        (incoming / name).touch()
        os.utime(incoming / name, (time.time() - age, time.time() - age))
    await store.put("a", b"content")
    assert [file.name for file in incoming.iterdir()] == ["new"]
    assert [found.key async for found in store.list("")] == ["a"]


async def test_file_and_folder_are_synced_before_the_object_counts(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    steps: list[str] = []
    replace, fsync = os.replace, os.fsync

    def noted_fsync(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        steps.append("sync " + path.removeprefix(str(tmp_path)).split(INCOMING)[0])
        fsync(handle)

    def noted_replace(source: str, target: str, **folders: int) -> None:
        steps.append("rename")
        replace(source, target, **folders)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    await store.put("a/b", b"content")
    folders = ["sync /store", "sync /store/root"]  # each new folder is synced into the one above
    assert steps == ["sync /store/", *folders, "rename", "sync /store/root/a"]


async def test_a_full_disk_leaves_the_old_object(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.put("a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match=r"file://.*/store/root: 'a' could not be reached .No space left"):
        await store.put("a", b"new")
    monkeypatch.undo()
    assert await store.get("a") == b"old"


async def test_an_object_cannot_have_the_name_of_a_folder(store: LocalStore) -> None:
    await store.put("a/b", b"content")
    with pytest.raises(StoreRefused, match="a folder has this name"):
        await store.put("a", b"content")
    with pytest.raises(StoreRefused, match="an object has the name of this folder"):
        await store.put("a/b/c", b"content")


async def test_an_object_that_is_deleted_while_listed_is_left_out(store: LocalStore) -> None:
    for name in ("a", "b", "c"):
        await store.put(name, b"content")
    listing = store.list("")
    first = await anext(listing)
    await asyncio.gather(store.delete("b"), store.delete("c"))
    await store.put("d", b"content")
    rest = [found.key async for found in listing]
    assert first.key == "a"
    assert set(rest) <= {"b", "c", "d"}


async def test_a_name_that_no_file_can_have_is_missing_and_cannot_be_written(store: LocalStore) -> None:
    key = f"v1/{'long' * 64}/object"
    for reading in (store.get(key), store.stat(key), store.read_range(key, 0, 1)):
        with pytest.raises(ObjectMissing):
            await reading
    assert [stat async for stat in store.list(f"{key}/")] == []
    assert await store.list_folders(f"{key}/") == []
    await store.delete(key)
    for writing in (store.put(key, b""), store.create(key, b"")):
        with pytest.raises(StoreRefused, match="at most 255 bytes"):
            await writing


async def test_links_in_the_folder_are_no_objects_and_lead_nowhere(store: LocalStore, tmp_path: Path) -> None:
    """On a volume that Ray pods write to, a link would be every file of the history server's own container."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "token").write_text("secret")
    (outside / "deep" / "token").write_text("secret")
    await store.put("logs/honest.out", b"fine")
    logs = tmp_path / "store" / "root" / "logs"
    (logs / "passwd.out").symlink_to(outside / "token")
    (logs / "dir").symlink_to(outside)
    (logs / "loop").symlink_to(logs / "loop")
    os.mkfifo(logs / "pipe")
    for key in ("passwd.out", "dir/token", "dir/deep/token", "loop", "loop/x", "pipe"):
        for reading in (store.get(f"logs/{key}"), store.stat(f"logs/{key}"), store.read_range(f"logs/{key}", 0, 9)):
            with pytest.raises(ObjectMissing):
                await reading
    assert [found.key async for found in store.list("")] == ["logs/honest.out"]
    assert [found.key async for found in store.list("logs/dir/")] == []
    assert await store.list_folders("logs/") == await store.list_folders("logs/dir/") == []


async def test_nothing_is_written_or_deleted_through_a_link(store: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("old")
    await store.put("tables/honest", b"fine")
    tables = tmp_path / "store" / "root" / "tables"
    (tables / "manifests").symlink_to(outside)
    (tables / "file").symlink_to(outside / "kept")
    for writing in (store.put("tables/manifests/kept", b"new"), store.create("tables/manifests/new", b"new")):
        with pytest.raises(StoreRefused):
            await writing
    await store.delete("tables/manifests/kept")
    await store.put("tables/file", b"new")  # takes the link's place
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "old"
    assert await store.get("tables/file") == b"new"


async def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStore(StoreSettings(LOCAL, str(tmp_path / "link"), ""))
    await store.put("a/b", b"content")
    assert await store.get("a/b") == b"content"
    assert [found.key async for found in store.list("")] == ["a/b"]
