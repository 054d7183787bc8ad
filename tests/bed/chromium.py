"""A real browser without a screen, spoken to over its DevTools protocol."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bed.cache import cache_folder
from bed.errors import BedError
from bed.fixtures import run_folder
from bed.locks import file_lock
from bed.node.commands import CommandFailed, find_program, run
from bed.processes import Process
from bed.progress import say, step
from bed.runs import end_run
from bed.waiting import wait_until

PROGRAM_VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
DEBIAN_PACKAGE = "chromium"
INSTALL_TIMEOUT_SECONDS = 600  # 100 MB, and another apt may be running
LOCK_WAIT_SECONDS = 120
WINDOW = (1600, 1000)  # wide enough that the dashboard's tables are not folded

# Nothing but the page itself is to be asked for, and nothing of a person's browser is to be used.
_QUIET = (
    "--headless=new",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
)
# /dev/shm has 64 MB in most containers, which ends the browser amid a page.
_IN_CONTAINERS = ("--disable-dev-shm-usage",)


class ChromiumMissing(BedError):
    """There is no browser here, and none can be installed."""


def chromium_program(environment: Mapping[str, str] = os.environ) -> Path:
    """The browser named by `CHROMIUM`, else the machine's, else Debian's, which root installs on first use."""
    if named := environment.get(PROGRAM_VARIABLE):
        if (program := shutil.which(named)) is None:
            raise ChromiumMissing(f"{PROGRAM_VARIABLE}={named} is no program")
        return Path(program)
    if (found := _installed()) is not None:
        return found
    _check_installable()
    with file_lock(cache_folder() / "chromium.lock", on_wait=lambda: say("bed: another run is installing Chromium")):
        return _installed() or _install()


class Chromium:
    """Handle of one browser with a profile of its own in `folder`."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._profile = folder / "profile"
        self._address_file = self._profile / "DevToolsActivePort"
        command = [
            str(program),
            *_QUIET,
            *_IN_CONTAINERS,
            *(("--no-sandbox",) if os.geteuid() == 0 else ()),  # its sandbox refuses to be root's
            f"--user-data-dir={self._profile}",
            f"--window-size={WINDOW[0]},{WINDOW[1]}",
            "--remote-debugging-port=0",
            "about:blank",
        ]
        self.process = Process("chromium", command, folder, {"HOME": str(folder)})

    def up(self) -> str:
        """Start it and return the address of its DevTools."""
        self._profile.mkdir(parents=True, exist_ok=True)
        self._address_file.unlink(missing_ok=True)  # of an earlier life
        self.process.start()
        return wait_until(f"Chromium listens (log: {self.process.log_file})", self._devtools_address)

    def _devtools_address(self) -> str:
        """From the file it writes once it listens: the port, and the path on a second line; empty before."""
        if not self.process.alive:
            raise BedError(f"Chromium ended: {self.process.last_lines()}")
        try:
            port, path = self._address_file.read_text().split("\n")
        except (FileNotFoundError, ValueError):
            return ""
        return f"ws://127.0.0.1:{port}{path}"


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Iterator[str]:
    """The DevTools address of a browser for this module; skips where there is none."""
    try:
        program = chromium_program()
    except ChromiumMissing as missing:
        pytest.skip(str(missing))
    folder = run_folder(request.config) / f"chromium-{uuid.uuid4().hex[:8]}"
    try:
        yield Chromium(program, folder).up()
    finally:
        end_run(folder)


def _installed() -> Path | None:
    return next((Path(found) for name in NAMES if (found := find_program(name)) is not None), None)


def _check_installable() -> None:
    if find_program("apt-get") is None or os.geteuid() != 0:
        raise ChromiumMissing(
            f"no browser here, and only root on Debian can install one: name it in {PROGRAM_VARIABLE}, or install "
            f"one of {', '.join(NAMES)}"
        )


def _install() -> Path:
    with step(f"installing Debian's {DEBIAN_PACKAGE}"):
        try:
            _apt_install()
        except CommandFailed as exc:
            raise ChromiumMissing(f"Debian's {DEBIAN_PACKAGE} could not be installed: {exc}") from exc
    if (found := _installed()) is None:
        raise ChromiumMissing(f"installed {DEBIAN_PACKAGE}, but there is still no program {' or '.join(NAMES)}")
    return found


def _apt_install() -> None:
    command = ("install", "--no-install-recommends", "--yes", DEBIAN_PACKAGE)
    try:
        _apt_get(*command)
    except CommandFailed:  # the package lists at hand may be old, or none
        _apt_get("update")
        _apt_get(*command)


def _apt_get(*arguments: str) -> None:
    command = ["apt-get", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_WAIT_SECONDS}", *arguments]
    run(command, env={"DEBIAN_FRONTEND": "noninteractive"}, timeout_seconds=INSTALL_TIMEOUT_SECONDS)
