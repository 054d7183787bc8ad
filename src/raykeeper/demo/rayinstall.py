"""Which Ray a demo runs: one that was named, one that is there already, or one installed into the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raykeeper.demo.errors import DemoFailed
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import RAY_VERSION, cache_folder
from raykeeper.errors import Misconfigured

OLDEST = (2, 54)
"""Before that, Ray cannot be told to send all its events, nor where a task's output is."""
PINS = Path(__file__).with_name("requirements-ray.txt")
"""Ray and all that it needs, each package by its hashes; `make pins` writes it."""
LOOK_SECONDS = 60.0  # for a Python to start from a cold disk

# Nothing of Ray is imported, which would take seconds. `aiohttp_cors` is what the dashboard needs beyond a bare `ray`.
_LOOK = """
import importlib.metadata, importlib.util, json
spec = importlib.util.find_spec("ray")
has_dashboard = bool(importlib.util.find_spec("aiohttp_cors"))
found = spec and spec.submodule_search_locations
print(json.dumps([importlib.metadata.version("ray"), found[0], has_dashboard] if found else None))
"""


@dataclass(frozen=True)
class RayInstall:
    """One Ray on this machine."""

    python: Path
    version: str
    package: Path
    """Folder of the package `ray`."""
    has_dashboard: bool = True
    """Installed as `ray[default]`: without that there is no dashboard and no jobs."""

    @property
    def dashboard(self) -> Path:
        """Ray's built dashboard, for the history server."""
        return self.package / "dashboard" / "client" / "build"

    @property
    def command(self) -> Path:
        """The command `ray` of that environment."""
        return self.python.with_name("ray")

    @property
    def why_not(self) -> str:
        """Why it cannot be used for a demo; empty where it can."""
        if parse_release(self.version) < OLDEST:
            return f"Ray {self.version} is too old, {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        return "" if self.has_dashboard else "Ray is there without its dashboard: install ray[default]"


def find_ray(named: Path | None, screen: Screen) -> RayInstall:
    """The Ray to run. Raises Misconfigured where the named one is none, DemoFailed where none can be installed."""
    if named is not None:
        return _checked(named)
    for python in _pythons():
        if (found := look_for_ray(python)) and not found.why_not:
            return found
    return _installed(screen)


def parse_release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, such as (2, 60, 0)."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def look_for_ray(python: Path) -> RayInstall | None:
    """The Ray that this Python would import."""
    try:
        # Isolated: a folder called `ray` where the user stands is not Ray.
        said = subprocess.run(  # noqa: S603 - the Python that was named or found, without a shell
            [python, "-I", "-c", _LOOK], capture_output=True, text=True, check=True, timeout=LOOK_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = json.loads(said)
    return RayInstall(python, found[0], Path(found[1]), found[2]) if found else None


def _checked(python: Path) -> RayInstall:
    python = Path(os.path.abspath(python.expanduser()))  # noqa: PTH100 - resolve() would leave the environment
    found = look_for_ray(python)
    if found is None or found.why_not:
        cure = found.why_not if found else "name the Python of an environment in which ray[default] is installed"
        raise Misconfigured("--ray-python", str(python), cure)
    return found


def _pythons() -> Iterator[Path]:
    """Where a Ray may be: beside raykeeper, in the environment that is active, in our own cache."""
    yield Path(sys.executable)
    if active := shutil.which("ray"):
        yield Path(active).with_name("python")
    if (_install_folder() / "complete").exists():
        yield _install_folder() / "bin" / "python"


def _install_folder() -> Path:
    pins = hashlib.sha256(PINS.read_bytes()).hexdigest()[:10]
    return cache_folder() / f"ray-{RAY_VERSION}-py{sys.version_info.major}.{sys.version_info.minor}-{pins}"


def _installed(screen: Screen) -> RayInstall:
    folder = _install_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with screen.step(f"installing Ray {RAY_VERSION} into {folder} (once; some 80 MB to fetch)"), _alone(folder):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)  # what an earlier attempt left
            for command in install_commands(folder):
                _run(command)
            (folder / "complete").touch()
    found = look_for_ray(folder / "bin" / "python")
    if found is None:
        raise DemoFailed(f"Ray was installed into {folder} but is not there; delete the folder and try again")
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other demo installs there; a lock of the kernel's goes away with its process."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install_commands(folder: Path) -> list[list[str]]:
    """What makes an environment with Ray there: by uv where there is one, else by pip."""
    python, wanted = str(folder / "bin" / "python"), ["--require-hashes", "-r", str(PINS)]
    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    if uv := shutil.which("uv", path=places):
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            # Compiled once, instead of by each of Ray's dozen processes at the first start.
            [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *wanted],
        ]
    return [
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
    ]


def _run(command: list[str]) -> None:
    outcome = subprocess.run(  # noqa: S603 - uv or pip, without a shell
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if outcome.returncode != 0:
        said = "\n".join(outcome.stdout.strip().splitlines()[-8:])
        what = f"{Path(command[0]).name} could not install Ray {RAY_VERSION}; a Python package index must be in reach"
        raise DemoFailed(what, said)
