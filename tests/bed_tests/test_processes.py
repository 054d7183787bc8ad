"""Daemons are found again by pid file, stopped for sure, and never mistaken for a stranger with the same pid."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.errors import BedError
from bed.ports import free_port
from bed.processes import RUN_VARIABLE, Process, ProcessId, kill_all, processes_of
from bed.waiting import wait_until

SLEEPER = "import signal, time\nprint('started', flush=True)\nwhile True: time.sleep(60)"
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SLEEPER}"


def python(name: str, code: str, folder: Path) -> Process:
    return Process(name, [sys.executable, "-c", code], folder)


def start(process: Process) -> ProcessId:
    process.start()
    wait_until("started", lambda: "started" in process.last_lines())
    assert process.id is not None
    return process.id


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    kill_all(tmp_path)


def test_a_process_is_found_again_by_its_pid_file(folder: Path) -> None:
    started = start(python("sleeper", SLEEPER, folder))
    assert python("sleeper", SLEEPER, folder).id == started


def test_starting_twice_keeps_the_first(folder: Path) -> None:
    sleeper = python("sleeper", SLEEPER, folder)
    first = start(sleeper)
    sleeper.start()
    assert sleeper.id == first


def test_a_restart_is_another_process(folder: Path) -> None:
    sleeper = python("sleeper", SLEEPER, folder)
    first = start(sleeper)
    sleeper.restart()
    assert sleeper.id not in (None, first)


def test_a_stopped_process_is_gone(folder: Path) -> None:
    sleeper = python("sleeper", SLEEPER, folder)
    started = start(sleeper)
    sleeper.stop()
    assert not started.alive
    assert not sleeper.alive


def test_a_process_that_ignores_sigterm_is_killed(folder: Path) -> None:
    stubborn = python("stubborn", STUBBORN, folder)
    started = start(stubborn)
    stubborn.stop(timeout=0.2)
    assert not started.alive


def test_a_paused_process_can_be_resumed_and_stopped(folder: Path) -> None:
    sleeper = python("sleeper", SLEEPER, folder)
    started = start(sleeper)
    stat = Path(f"/proc/{started.pid}/stat")
    sleeper.pause()
    wait_until("paused", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    sleeper.resume()
    wait_until("running", lambda: stat.read_text().rpartition(")")[2].split()[0] == "S")
    sleeper.pause()
    sleeper.stop(timeout=5)
    assert not started.alive


def test_pausing_what_does_not_run_is_an_error(folder: Path) -> None:
    with pytest.raises(BedError, match="sleeper does not run"):
        python("sleeper", SLEEPER, folder).pause()


def test_a_recycled_pid_is_not_signalled(folder: Path) -> None:
    stranger = start(python("stranger", SLEEPER, folder))
    old = ProcessId(stranger.pid, stranger.started - 1)
    assert not old.alive
    old.send(signal.SIGKILL)
    assert stranger.alive


def test_a_half_written_pid_file_counts_as_none(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "sleeper.pid").write_text("12")
    assert not python("sleeper", SLEEPER, folder).alive


def test_all_processes_of_a_folder_are_found_without_their_pid_files(folder: Path) -> None:
    inner = start(python("inner", SLEEPER, folder / "inner"))
    child = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {SLEEPER!r}])\n{SLEEPER}"
    start(python("parent", child, folder))
    wait_until("all three", lambda: len(processes_of(folder)) == 3)
    (folder / "inner" / "run" / "inner.pid").unlink()
    kill_all(folder)
    assert processes_of(folder) == []
    assert not inner.alive


def test_daemons_get_neither_proxies_nor_secrets_of_the_caller(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    started = start(python("sleeper", SLEEPER, folder))
    environment = Path(f"/proc/{started.pid}/environ").read_bytes().split(b"\0")
    assert f"{RUN_VARIABLE}={folder}".encode() in environment
    assert not any(variable.startswith(b"HTTPS_PROXY") for variable in environment)


def test_a_daemon_hears_sigint_where_its_caller_was_told_not_to(folder: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in what a script starts with `&`
    try:
        started = start(python("sleeper", SLEEPER, folder))
    finally:
        signal.signal(signal.SIGINT, before)
    started.send(signal.SIGINT)
    assert started.wait(10)


def test_the_own_process_is_alive() -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    assert me.alive
    assert ProcessId.parse(str(me)) == me


def test_ports_are_handed_out_once() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
