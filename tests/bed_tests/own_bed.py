"""A bed with a state of its own, for tests of what outlives processes; only the built binaries are shared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bed.binaries import build
from bed.cache import CACHE_VARIABLE, cache_folder
from bed.processes import ProcessId, processes_of

BED = Path(sys.executable).with_name("bed")


class OwnBed:
    """The `bed` command and pytest, run as processes whose cache is `cache`."""

    def __init__(self, cache: Path) -> None:
        build()
        self.cache = cache
        cache.mkdir()
        (cache / "bin").symlink_to(cache_folder() / "bin")
        # What pytest and xdist tell their own processes is not for the pytest that is started here.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self.environment = inherited | {CACHE_VARIABLE: str(cache)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`bed ARGUMENTS`, to its end."""
        command = [str(BED), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """`bed ARGUMENTS`, in the background."""
        return self._start([str(BED), *arguments])

    def start_pytest(self, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """pytest with the bed's fixtures on the tests in `folder`, in the background."""
        plugins = ["-p", "bed.fixtures", "-p", "no:cacheprovider", f"--rootdir={folder}"]
        return self._start([sys.executable, "-m", "pytest", *plugins, *arguments, str(folder)])

    @property
    def processes(self) -> list[ProcessId]:
        """What runs in this bed now."""
        return processes_of(self.cache)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.cache / "output").open("ab") as output:
            return subprocess.Popen(command, env=self.environment, stdout=output, stderr=output)
