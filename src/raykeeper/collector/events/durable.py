"""Files that are whole after a crash or not there at all."""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each of which a crash then leaves in place."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed or deleted in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """Write a whole file, durably; `scratch` is where it grows, on the same file system. Leaves nothing on failure."""
    try:
        with scratch.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        make_folder(path.parent)
        scratch.rename(path)
        sync_folder(path.parent)
    finally:
        scratch.unlink(missing_ok=True)
