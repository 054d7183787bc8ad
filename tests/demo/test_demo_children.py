"""Whatever happens to a demo, no process of it is left, and a program that dies is told with its last words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raykeeper.demo import children as children_module
from raykeeper.demo.children import Child, Children
from raykeeper.demo.errors import DemoFailed
from raykeeper.demo.leftovers import find_leftovers

STUBBORN = Path(__file__).parent / "programs" / "stubborn.py"
SLEEP = ["/bin/sleep", "600"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Of one run; checked to be without processes afterwards."""
    yield tmp_path
    assert not list(find_leftovers(tmp_path))


def _children(folder: Path) -> Children:
    return Children(folder, dict(os.environ))


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_programs_end_with_the_demo(folder: Path) -> None:
    with _children(folder) as children:
        first, second = children.start("first", SLEEP), children.start("second", SLEEP)
        assert len(list(find_leftovers(folder))) == 2
    assert (first.exit_code, second.exit_code) == (-signal.SIGTERM, -signal.SIGTERM)


def test_programs_end_when_the_demo_fails(folder: Path) -> None:
    def interrupted() -> None:
        with _children(folder) as children:
            children.start("one", SLEEP)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(find_leftovers(folder))


def test_a_stubborn_program_is_killed_with_what_it_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "END_SECONDS", 0.3)
    with _children(folder) as children:
        child, hidden = _start_stubborn(children, folder)
    assert child.exit_code == -signal.SIGKILL
    assert not Path(f"/proc/{hidden}/fd").is_dir() or not list(Path(f"/proc/{hidden}/fd").iterdir())


def test_a_second_ctrl_c_does_not_wait(folder: Path) -> None:
    with _children(folder) as children:
        child, _ = _start_stubborn(children, folder)
        began = time.monotonic()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    assert child.exit_code == -signal.SIGKILL
    assert time.monotonic() - began < children_module.END_SECONDS


def test_a_program_that_dies_is_told_with_its_last_lines(folder: Path) -> None:
    with _children(folder) as children:
        dying = children.start("the dying one", _python("print('first'); print('no disk'); raise SystemExit(7)"))
        other = children.start("the other", SLEEP)
        with pytest.raises(DemoFailed) as failure:
            children.wait_until(lambda: False, 30, "waiting", other)
    assert str(failure.value) == "the dying one ended with code 7, its last lines:\n  | first\n  | no disk"
    assert dying.exit_code == 7


def test_a_program_that_was_asked_to_end_is_not_missed(folder: Path) -> None:
    with _children(folder) as children:
        child = children.start("one", SLEEP)
        child.ask_to_end()
        children.wait_until(lambda: child.exit_code is not None, 30, "ending", child)
        children.check()


def test_a_condition_that_does_not_come_true_names_who_is_at_fault(folder: Path) -> None:
    with _children(folder) as children:
        slow = children.start("the slow one", _python("import time; print('thinking', flush=True); time.sleep(600)"))
        children.wait_until(lambda: "thinking" in slow.last_lines, 30, "thinking", slow)
        with pytest.raises(DemoFailed, match=r"^starting took more than 0 s; the slow one is at fault") as failure:
            children.wait_until(lambda: False, 0.2, "starting", slow)
    assert "  | thinking" in str(failure.value)


def test_a_process_of_another_run_is_left_alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with subprocess.Popen(SLEEP, env={"RAY_TMP_ROOT": str(elsewhere)}) as stranger:
        with _children(folder) as children:
            children.start("ours", SLEEP)
        assert stranger.poll() is None
        stranger.kill()


def _start_stubborn(children: Children, folder: Path) -> tuple[Child, int]:
    child = children.start("stubborn", [sys.executable, str(STUBBORN), str(folder / "worker.out")])
    children.wait_until(lambda: child.last_lines.strip().isdigit(), 30, "starting", child)
    return child, int(child.last_lines)
