"""`python -m recording [name ...]`: records the named failures, or all, into `tests/golden/failures/`.

It runs in a pid namespace of its own, so root on Linux is needed: Ray names the largest processes of the machine when
memory runs out, and those of strangers belong into no recording. Ray with all its libraries is installed on first use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording.archives import pack_store
from recording.lives import a_recorded_life
from recording.scenarios import SCENARIOS, Scenario

_ALONE = "RAYKEEPER_RECORDING_ALONE"


def main(names: list[str]) -> int:
    """Record one after the other: each needs both cores."""
    if _ALONE not in os.environ:
        return _run_alone(names)
    unknown = set(names) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"no such failure: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for scenario in SCENARIOS:
        if not names or scenario.name in names:
            record(scenario)
    return 0


def _run_alone(names: list[str]) -> int:
    """This program once more, where it sees no processes but its own."""
    unshare = shutil.which("unshare") or "unshare"
    command = [unshare, "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-m", "recording", *names]
    return subprocess.run(command, env=os.environ | {_ALONE: "1"}, check=False).returncode


def record(scenario: Scenario) -> None:
    """Let it happen to a cluster of its own and keep what the collectors stored."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rk-recording-") as scratch:
        live(scenario, Path(scratch))
        file = pack_store(Path(scratch) / "store", scenario.name)
    print(f"{scenario.name}: {file.stat().st_size} bytes, {time.monotonic() - began:.0f} s", flush=True)


def live(scenario: Scenario, folder: Path) -> None:
    """From the start of its head to the end of its collectors; `folder` has the store afterwards."""
    with a_recorded_life(scenario.name, folder, scenario.environment(), scenario.version) as life:
        life.start_head()
        if scenario.needs_worker:
            life.start_worker()
        scenario.happen(life)
        life.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
