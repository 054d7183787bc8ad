"""The bed of `bed up`: one per user, living until `bed down`, whoever started it and however that ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.binaries import binary
from bed.cache import cache_folder
from bed.control_plane import ControlPlane
from bed.daemons import ControlPlaneSettings
from bed.errors import BedError
from bed.kwok import FAKE_NODE_TAINT, Kwok
from bed.locks import file_lock
from bed.minio import BUCKET, Minio, MinioLayout
from bed.processes import ProcessId, processes_of
from bed.progress import say, step
from bed.runs import end_run, sweep, up_folder


@dataclass(frozen=True)
class Wish:
    """What `bed up` was asked for, beyond the control plane."""

    node: bool = False
    kwok_nodes: int = 0
    minio: bool = False


def bring_up(wish: Wish) -> list[str]:
    """Start what was asked for and does not run yet; returns shell lines that point a person's tools to it."""
    with _exclusive():
        sweep()
        folder = up_folder()
        plane = _control_plane(folder, wish)
        if wish.kwok_nodes:
            with step(f"starting kwok with {wish.kwok_nodes} nodes"):
                # Next to a real node nothing lands on a fake one that does not ask for it.
                Kwok(plane).up(wish.kwok_nodes, [FAKE_NODE_TAINT] if wish.node else [])
        store = _minio(folder / "minio") if wish.minio else None
        return _exports(plane, store)


def take_down() -> None:
    """End everything `bed up` started, and what crashed test runs left. Nothing happens when there is nothing."""
    with _exclusive():
        if up_folder().exists():
            with step("taking the bed down"):
                end_run(up_folder())
        for folder in sweep():
            say(f"bed: ended what a crashed test run left in {folder}")


def running() -> list[tuple[str, ProcessId]]:
    """Name and id of every daemon of `bed up` that runs."""
    found = {process.pid: process for process in processes_of(up_folder())}
    names = {_pid(file): file.stem for file in sorted(up_folder().rglob("run/*.pid"))}
    return [(names.get(pid, "(started by one of them)"), process) for pid, process in found.items()]


def running_kubeconfig() -> Path:
    """The administrator's kubeconfig of the bed that is up."""
    plane = ControlPlane.attach(up_folder()) if up_folder().exists() else None
    if plane is None or not plane.alive:
        raise BedError("no bed is up: run `bed up --kwok 6` first")
    return plane.admin_kubeconfig


def _control_plane(folder: Path, wish: Wish) -> ControlPlane:
    if not wish.node:
        plane = ControlPlane.find_or_create(folder)
        with step("starting the control plane"):
            plane.up()
        return plane
    from bed.node.real_node import node_cluster
    from bed.node.settings import NODE_SETTINGS

    _check_settings(folder, NODE_SETTINGS)
    return node_cluster(folder).plane


def _check_settings(folder: Path, settings: ControlPlaneSettings) -> None:
    """A control plane on loopback cannot get a real node later: pods could not reach it."""
    try:
        there = ControlPlane.attach(folder).settings
    except BedError:
        return  # none yet
    if there.address != settings.address:
        raise BedError("a bed without a real node is up: run `bed down` first, then `bed up --node`")


def _minio(folder: Path) -> Minio:
    server = Minio.attach(folder) if MinioLayout.file(folder).exists() else Minio.create(folder)
    with step("starting MinIO"):
        server.up()
    return server


def _exports(plane: ControlPlane, store: Minio | None) -> list[str]:
    lines = [f"export KUBECONFIG={plane.admin_kubeconfig}"]
    if shutil.which("kubectl") is None:
        lines.append(f"export PATH={binary('kubectl').parent}:$PATH")
    if store is not None:
        lines.append(f"export AWS_ENDPOINT_URL={store.endpoint}  # bucket: {BUCKET}")
        lines.append(f"export AWS_ACCESS_KEY_ID={store.access_key} AWS_SECRET_ACCESS_KEY={store.secret_key}")
    return lines


def _pid(file: Path) -> int:
    written = ProcessId.parse(file.read_text())
    return written.pid if written else 0


@contextmanager
def _exclusive() -> Iterator[None]:
    """One `bed up` or `bed down` at a time."""
    with file_lock(cache_folder() / "up.lock", on_wait=lambda: say("bed: another `bed` command is at work; waiting")):
        yield
