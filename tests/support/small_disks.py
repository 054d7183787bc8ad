"""File systems so small that a test can fill them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of so many bytes at `folder`; the test is skipped where none can be mounted."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a file system")
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)
