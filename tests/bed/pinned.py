"""Programs that come as Python packages, installed into the cache on first use, of exactly the versions pinned."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.progress import say, step
from bed.uv import run_uv


def installed(pins: Path, name: str) -> Path:
    """The folder with what the file of pins names."""
    folder = cache_folder() / f"{name.lower()}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:10]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f"{folder.name}.lock")
    with file_lock(lock, on_wait=lambda: say(f"bed: another run is installing {name}; waiting")):
        if not (folder / "complete").exists():
            with step(f"installing {name}"):
                shutil.rmtree(folder, ignore_errors=True)  # what an earlier attempt left
                exactly = ["pip", "install", "--quiet", "--require-hashes", "--target", str(folder)]
                run_uv([*exactly, "-r", pins], purpose=f"installing {pins.name}")
                (folder / "complete").touch()
    return folder
