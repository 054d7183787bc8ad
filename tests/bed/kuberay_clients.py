"""KubeRay's own clients: Python packages out of its Go module, with what they need from PyPI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bed.binaries import KUBERAY
from bed.errors import BedError
from bed.golang import module_folder
from bed.pinned import installed

PINS = Path(__file__).with_name("requirements-kuberay-clients.txt")


def clients_folder() -> Path:
    """`clients` of KubeRay's sources, read only."""
    return module_folder("github.com/ray-project/kuberay", KUBERAY) / "clients"


def run_their_tests(file: Path, sources: Path, kubeconfig: Path, *, only: str = "", broken: str = "") -> None:
    """Run tests of theirs under pytest, as they are and with nothing of ours to be imported. Raises `BedError` unless
    all of the file have passed, or all with `only` in their names; the one that is `broken` must fail."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [sources, file.parent, installed(PINS, "KubeRay's clients")])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "KUBECONFIG": str(kubeconfig),
    }
    plain = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={file.parent}", "--import-mode=importlib"]
    command = [sys.executable, "-m", "pytest", *plain, *([f"-k={only}"] if only else []), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=900, check=False)
    found = re.findall(rf"def (test_\w*{only}\w*)\(", file.read_text())
    expected = f"{found.count(broken)} failed, {len(found) - 1} passed" if broken else f"{len(found)} passed"
    if expected.removesuffix(", 0 passed") not in done.stdout or (broken and f"::{broken}" not in done.stdout):
        raise BedError(f"tests of {file.name}, expected {expected}:\n{done.stdout}\n{done.stderr}")
