"""One control plane serves all workers of a test run, and ends with the run, also with a crashed one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.fixtures import LONGEST_FIRST
from bed.processes import kill_all
from bed.waiting import wait_until
from bed_tests.own_bed import OwnBed

pytestmark = pytest.mark.bed

A_TEST = """
from pathlib import Path

def test_notes_the_api_server(control_plane, namespace):
    assert control_plane.admin.answers(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    Path(__file__).with_suffix(".note").write_text(str(control_plane.apiserver.id))

def test_needs_nothing():
    Path(__file__).with_suffix(".unmarked").touch()
"""
AN_ENDLESS_TEST = """
import time

def test_never_ends(control_plane):
    time.sleep(600)
"""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[OwnBed]:
    one = OwnBed(tmp_path / "cache")
    yield one
    kill_all(one.cache)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    return folder


def test_workers_share_one_control_plane_that_ends_with_the_run(bed: OwnBed, suite: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (suite / name).write_text(A_TEST)
    run = bed.start_pytest(suite, "-n", "2", "--dist", "loadfile", "-m", "bed")
    assert run.wait(timeout=120) == 0, (bed.cache / "output").read_text()
    notes = [file.read_text() for file in suite.glob("*.note")]
    assert len(notes) == 2
    assert notes[0] == notes[1]
    assert list(suite.glob("*.unmarked")) == []  # only tests that use the bed were marked
    assert bed.processes == []
    assert list((bed.cache / "runs").iterdir()) == []


def test_what_a_killed_run_left_is_ended_by_the_next(bed: OwnBed, suite: Path) -> None:
    (suite / "test_endless.py").write_text(AN_ENDLESS_TEST)
    run = bed.start_pytest(suite)
    wait_until("etcd and the API server run", lambda: len(bed.processes) >= 2)
    run.kill()
    run.wait()
    left = bed.processes
    assert len(left) >= 2
    (suite / "test_endless.py").write_text(
        "def test_ends(request):\n    from bed.fixtures import run_folder\n    run_folder(request.config)\n"
    )
    assert bed.start_pytest(suite).wait(timeout=60) == 0
    assert bed.processes == []


def test_what_comes_first_is_there() -> None:
    tests = Path(__file__).parents[1]
    assert [file for file in LONGEST_FIRST if not (tests / file).is_file()] == []
