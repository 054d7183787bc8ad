"""`raykeeper demo` with a real Ray: what is shown is what happened, and nothing is left, however it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from bed.rayenv import ray_python
from bed.waiting import wait_until
from demo.running_demo import RunningDemo, running_demo
from raykeeper.demo.leftovers import find_leftovers

ROOT = Path(__file__).parent.parent.parent
OWN_SCRIPT = Path(__file__).parent / "programs" / "own_script.py"
START_SECONDS, WHOLE_SECONDS = 120.0, 240.0  # four times what it takes when nobody else uses the cores

pytestmark = pytest.mark.bed


def test_make_demo_shows_a_dead_ray_and_what_failed_in_it(tmp_path: Path) -> None:
    arguments = f"--exit --folder {tmp_path / 'store'} --ray-python {ray_python()}"
    command = ["make", "--no-print-directory", "demo", f"DEMO_ARGS={arguments}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WHOLE_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ray is gone. What the history says of it:" in done.stdout
    assert "And its report, as `raykeeper report` has it:" in done.stdout
    assert "divide            2 FAILED, 6 FINISHED" in done.stdout
    assert "2 x divide: ZeroDivisionError: division by zero" in done.stdout
    assert "Counter DEAD, restarted 1 x" in done.stdout
    assert "FAILED: Job entrypoint command failed with exit code 1" in done.stdout
    assert f"its history stays in {tmp_path / 'store'}" in done.stdout
    assert list((tmp_path / "store" / "v1" / "catalog").rglob("*.end.json"))
    _check_report(done.stdout, tmp_path / "cache")


def test_ones_own_script_is_remembered_with_its_output_and_exit_code(tmp_path: Path) -> None:
    with running_demo(tmp_path, ["python", str(OWN_SCRIPT), "Ada", "5"]) as demo:
        demo.wait_for("Ctrl-C ends the history server", WHOLE_SECONDS)
        folder = demo.wait_for_run_folder(START_SECONDS)
        assert f"  | in {tmp_path.name}: hello Ada\n" in demo.output
        assert "the script ended with code 5 (FAILED)" in demo.output
        assert "1 x stumble: RuntimeError: stumbled on purpose" in demo.output
        _check_ray_cli(demo)
        assert demo.end(signal.SIGTERM) == 5
    _check_gone(folder)


def test_a_demo_that_is_ended_while_ray_starts_leaves_nothing(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        folder = demo.wait_for_run_folder(START_SECONDS)
        wait_until("a Ray", lambda: list(folder.glob("ray/session_2*")), timeout=START_SECONDS)
        assert demo.end(signal.SIGINT) == 130
        assert "interrupted; everything is ended" in demo.output
    _check_gone(folder)


def test_a_program_that_dies_ends_the_demo_with_its_last_lines(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        folder = demo.wait_for_run_folder(START_SECONDS)
        [server] = [pid for pid in find_leftovers(folder) if b"history" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        subprocess.run(["kill", "-9", str(server)], check=True)
        assert demo.process.wait(START_SECONDS) == 1
        assert "raykeeper: history server ended with code -9" in demo.output
    _check_gone(folder)


def _check_report(output: str, cache: Path) -> None:
    """The command that the demo recommends, as it stands there."""
    line = next(line.strip() for line in output.splitlines() if " report local/demo/" in line)
    command = [*line.split(), f"--cache-dir={cache}"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=WHOLE_SECONDS, check=False)
    headline = "ZeroDivisionError: division by zero\nfailing_job.py:"
    assert (told.returncode, headline in told.stdout) == (1, True), told.stdout + told.stderr


def _check_ray_cli(demo: RunningDemo) -> None:
    """The command that the demo recommends, as it stands there."""
    line = next(line.strip() for line in demo.output.splitlines() if " list tasks --address " in line)
    command = [*re.split(r"\s+", line), "--format=json"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=WHOLE_SECONDS, check=True).stdout
    assert [(row["name"], row["state"]) for row in json.loads(listed)] == [("stumble", "FAILED")]


def _check_gone(folder: Path) -> None:
    assert not list(find_leftovers(folder))
    assert not folder.exists()
