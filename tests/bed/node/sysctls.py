"""Kernel settings that a kubelet changes for the whole machine: remembered before, put back after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bed.node.settings import MACHINE_FOLDER

SYSCTLS = (
    "kernel.keys.root_maxbytes",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)
SAVED_FILE = MACHINE_FOLDER / "sysctls.json"
"""In /run: a reboot resets the settings and forgets the file together."""


def sysctl_values() -> dict[str, str]:
    """The present values; a setting that this kernel lacks is left out."""
    return {name: _path(name).read_text().strip() for name in SYSCTLS if _path(name).exists()}


def save_sysctls(file: Path = SAVED_FILE) -> None:
    """Remember the values, unless values from before an unfinished run are remembered already."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(sysctl_values()))
    unfinished.rename(file)


def restore_sysctls(file: Path = SAVED_FILE) -> None:
    """Put back what was remembered and forget it; nothing happens when nothing was."""
    if not file.exists():
        return
    saved: Mapping[str, str] = json.loads(file.read_text())
    for name, value in saved.items():
        if _path(name).read_text().strip() != value:
            _path(name).write_text(value)
    file.unlink()


def _path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")
