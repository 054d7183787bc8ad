"""`bed up` gives a cluster, `bed down` leaves nothing behind, whatever died in between."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.processes import RUN_VARIABLE, kill_all
from bed.waiting import wait_until
from bed_tests.own_bed import OwnBed

pytestmark = pytest.mark.bed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[OwnBed]:
    one = OwnBed(tmp_path / "cache")
    yield one
    kill_all(one.cache)


def exported(output: str) -> dict[str, str]:
    """The variables that the printed shell lines set."""
    shell = subprocess.run(["bash", "-c", f"{output}\nenv"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in shell.stdout.splitlines() if "=" in line)


def test_up_gives_a_cluster_with_nodes_and_a_store_and_down_ends_it(bed: OwnBed) -> None:
    up = bed.run("up", "--kwok", "2", "--minio")
    assert up.returncode == 0, up.stderr
    assert "starting the control plane: done in" in up.stderr
    environment = exported(up.stdout)
    nodes = subprocess.run(
        [bed.cache / "bin/kubectl-v1.36.3/kubectl", "get", "nodes", "-o", "name"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert nodes.stdout.split() == ["node/fake-1", "node/fake-2"]
    assert environment["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    status = bed.run("status")
    assert (status.returncode, len(status.stdout.splitlines())) == (0, 6)
    assert bed.run("down").returncode == 0
    assert bed.processes == []
    assert not (bed.cache / "up").exists()


def test_down_is_done_twice_without_harm_and_status_says_so(bed: OwnBed) -> None:
    assert bed.run("down").returncode == 0
    assert bed.run("down").returncode == 0
    status = bed.run("status")
    assert (status.returncode, status.stdout) == (1, "not up\n")


def test_down_cleans_up_after_a_killed_up_and_a_killed_daemon(bed: OwnBed) -> None:
    up = bed.start("up")
    wait_until("etcd and the API server run", lambda: len(bed.processes) >= 2)
    up.kill()
    up.wait()
    assert len(bed.processes) >= 2  # they do not die with it
    bed.processes[0].send(signal.SIGKILL)
    down = bed.run("down")
    assert down.returncode == 0, down.stderr
    assert bed.processes == []


def test_up_again_starts_what_died(bed: OwnBed) -> None:
    first = bed.run("up")
    assert first.returncode == 0, first.stderr
    for process in bed.processes[:2]:
        process.send(signal.SIGKILL)
    again = bed.run("up")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert len(bed.processes) == 4
    bed.run("down")


def test_what_a_crashed_test_run_left_is_swept(bed: OwnBed) -> None:
    folder = bed.cache / "runs" / "1-1"
    folder.mkdir(parents=True)
    (folder / "owner").write_text("1 999999999")  # no process ever started then
    left = subprocess.Popen(["sleep", "600"], env={RUN_VARIABLE: str(folder / "shared")}, start_new_session=True)
    down = bed.run("down")
    assert left.wait(timeout=10) == -signal.SIGKILL
    assert f"ended what a crashed test run left in {folder}" in down.stderr
    assert not folder.exists()


def test_a_mistake_is_one_line_without_a_traceback(bed: OwnBed) -> None:
    outcome = bed.run("build", "nonsense")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("bed: no binary is called 'nonsense'; there are etcd,")
    assert len(outcome.stderr.splitlines()) == 1
