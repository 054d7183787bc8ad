"""Run folders: the state of everything one test run (or one `bed up`) started, so that it can be ended from outside.

`CACHE/runs/ID/owner` names the process a run belongs to. A run whose owner is dead was left by a crash and is swept
by the next one. `CACHE/up` is the one that `bed up` makes; it belongs to nobody and lives until `bed down`.
"""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.processes import ProcessId, kill_all

OWNER_FILE = "owner"
NODE_FOLDER = "node"
"""Inside the folder of a control plane: the state of the real node that belongs to it."""


def new_run() -> Path:
    """A folder for a run that belongs to this process, after sweeping what earlier crashes left."""
    me = ProcessId.of(os.getpid())
    folder = _runs() / str(me).replace(" ", "-")
    with _sweeping():  # or another process could sweep the folder before its owner is written
        _end_ownerless()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / OWNER_FILE).write_text(str(me))
    return folder


def end_run(folder: Path) -> None:
    """End whatever still runs in `folder`, in any state, and remove it. Nothing happens when it is gone already."""
    for node_folder in [folder / NODE_FOLDER, *folder.glob(f"*/{NODE_FOLDER}")]:
        if node_folder.exists():
            from bed.node.real_node import take_down  # only where a node was: it needs root and Linux

            take_down(node_folder)
    kill_all(folder)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[Path]:
    """End the runs whose owner is dead; returns their folders."""
    with _sweeping():
        return _end_ownerless()


def up_folder() -> Path:
    """The folder of `bed up`."""
    return cache_folder() / "up"


def _runs() -> Path:
    return cache_folder() / "runs"


def _sweeping() -> AbstractContextManager[None]:
    return file_lock(cache_folder() / "sweep.lock")


def _end_ownerless() -> list[Path]:
    folders = sorted(_runs().iterdir()) if _runs().exists() else []
    ownerless = [folder for folder in folders if not _is_owned(folder)]
    for folder in ownerless:
        end_run(folder)
    return ownerless


def _is_owned(folder: Path) -> bool:
    try:
        owner = ProcessId.parse((folder / OWNER_FILE).read_text())
    except FileNotFoundError:
        return False
    return owner is not None and owner.alive
