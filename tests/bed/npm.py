"""Programs from npm, installed once per committed lock file into the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from bed.cache import cache_folder
from bed.errors import BedError
from bed.locks import file_lock
from bed.progress import say, step

LOCKS = Path(__file__).parent / "npm"
"""Committed package.json and package-lock.json of each program."""


def npm_is_missing() -> str | None:
    """Why programs from npm cannot be had here, or None."""
    absent = [name for name in ("node", "npm") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not installed" if absent else None


def npm_program(name: str, command: str) -> Path:
    """The script `command` of the program that `npm/NAME` pins."""
    return npm_modules(name) / ".bin" / command


def npm_modules(name: str) -> Path:
    """The folder of the packages that `npm/NAME` pins, installed first when the cache has them not."""
    lock_file = LOCKS / name / "package-lock.json"
    folder = cache_folder() / f"{name}-{hashlib.sha256(lock_file.read_bytes()).hexdigest()[:10]}"
    with file_lock(folder.with_name(f"{folder.name}.lock"), on_wait=lambda: say(f"bed: another run installs {name}")):
        if not (folder / "complete").exists():
            with step(f"installing {name} from npm"):
                _install(name, folder)
    return folder / "node_modules"


def _install(name: str, folder: Path) -> None:
    if cause := npm_is_missing():
        raise BedError(f"{name} cannot be installed: {cause}")
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier attempt left
    folder.mkdir(parents=True)
    for file in (LOCKS / name).iterdir():
        shutil.copy(file, folder)
    exactly = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    outcome = subprocess.run(
        exactly, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if outcome.returncode != 0:
        cause = "\n  ".join(outcome.stdout.strip().splitlines()[-8:])
        raise BedError(f"installing {name} failed; needed is a registry that npm can reach\n  {cause}")
    (folder / "complete").touch()
