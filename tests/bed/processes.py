"""Daemons of the bed: started in a session of their own, found again by pid file, stopped without hitting a stranger.

A daemon outlives the process that started it (`bed up` returns), so everything about it is on disk.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bed.errors import BedError

RUN_VARIABLE = "RAYKEEPER_BED_RUN"
"""Set in every daemon to its run folder, and inherited by whatever the daemon starts: `kill_all` finds them by it."""

_KEEPS_ENVIRONMENT = {"SPT_NOENV": "1"}
"""Ray's processes rename themselves. Without this they overwrite what /proc shows of their environment."""

_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "TZ")  # proxies and the like must not reach the daemons


@dataclass(frozen=True)
class ProcessId:
    """One process for ever: a pid is used again, the pair with its start time is not."""

    pid: int
    started: int
    """Clock ticks since boot, as in /proc/PID/stat; does not move when the wall clock is set."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has this pid now, unless there is none or only its zombie."""
        found = _state_and_start(pid)
        return None if found is None or found[0] in "ZX" else cls(pid, found[1])

    @classmethod
    def parse(cls, text: str) -> ProcessId | None:
        """Read back what `str` wrote; None for a file that was only half written."""
        parts = text.split()
        return cls(int(parts[0]), int(parts[1])) if len(parts) == 2 and all(map(str.isdigit, parts)) else None

    def __str__(self) -> str:
        return f"{self.pid} {self.started}"

    @property
    def alive(self) -> bool:
        return ProcessId.of(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        """Signal exactly this process; nothing happens when it is gone."""
        with self._handle() as handle:
            if handle is not None:
                signal.pidfd_send_signal(handle, number)

    def wait(self, timeout: float) -> bool:
        """Whether it ended within `timeout` seconds; a child of ours is also reaped."""
        with self._handle() as handle:
            if handle is not None:
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                if not ended.poll(timeout * 1000):
                    return False
        with suppress(ChildProcessError):  # started by someone else, who reaps it
            os.waitpid(self.pid, os.WNOHANG)
        return True

    @contextmanager
    def _handle(self) -> Iterator[int | None]:
        """A pidfd: it keeps meaning this process even when the pid is given to another in between."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            # Its main thread may be a zombie while others still hold its sockets: that is not the end yet.
            found = _state_and_start(self.pid)
            yield handle if found is not None and found[1] == self.started else None
        except ProcessLookupError:
            pass  # it ended between the check and the signal
        finally:
            os.close(handle)


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """State letter and start time from /proc/PID/stat; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    return state, int(fields[18])


class Process:
    """A daemon with a name: `FOLDER/run/NAME.pid` and `FOLDER/log/NAME.log` belong to it."""

    def __init__(
        self, name: str, argv: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.argv = [str(part) for part in argv]
        self.folder = folder
        self.log_file = folder / "log" / f"{name}.log"
        self._pid_file = folder / "run" / f"{name}.pid"
        self._environment = dict(environment or {})

    @property
    def id(self) -> ProcessId | None:
        """The running process, or None."""
        try:
            found = ProcessId.parse(self._pid_file.read_text())
        except FileNotFoundError:
            return None
        return found if found is not None and found.alive else None

    @property
    def alive(self) -> bool:
        return self.id is not None

    def start(self) -> None:
        """Start it; nothing happens when it runs already."""
        if self.alive:
            return
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self._pid_file.parent.mkdir(parents=True, exist_ok=True)
        # Not subprocess.Popen: it complains when its object goes away before the daemon, and daemons are to outlive us.
        pid = os.posix_spawn(
            self.argv[0],
            self.argv,
            self._full_environment(),
            file_actions=self._files(),
            setsid=True,
            # A script turns SIGINT off for what it starts with `&`, and their children inherit that. Ray cancels tasks
            # by SIGINT.
            setsigdef=[signal.SIGINT],
        )
        started = ProcessId.of(pid)
        if started is None:
            raise BedError(f"{self.name} ended at once: {self.last_lines()}")
        self._pid_file.write_text(str(started))

    def stop(self, timeout: float = 10.0) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds; returns once it is gone."""
        if (running := self.id) is not None:
            running.send(signal.SIGTERM)
            running.send(signal.SIGCONT)  # a paused process only ends once it runs
            if not running.wait(timeout):
                self.kill()
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """SIGKILL, as a crash would do; returns once it is gone."""
        if (running := self.id) is not None:
            kill_and_wait(running)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self._signal(signal.SIGCONT)

    def restart(self, timeout: float = 10.0) -> None:
        """Stop, then start with the same arguments."""
        self.stop(timeout)
        self.start()

    def last_lines(self, count: int = 8) -> str:
        """The end of its log, for error messages."""
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-count:])

    def _signal(self, number: signal.Signals) -> None:
        if (running := self.id) is None:
            raise BedError(f"{self.name} does not run")
        running.send(number)

    def _full_environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return inherited | _KEEPS_ENVIRONMENT | self._environment | {RUN_VARIABLE: str(self.folder)}

    def _files(self) -> list[tuple[int, int, str, int, int] | tuple[int, int, int]]:
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log_file), append, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]


def kill_and_wait(process: ProcessId, timeout: float = 60.0) -> None:
    """SIGKILL one process and return once it is gone."""
    process.send(signal.SIGKILL)
    if not process.wait(timeout):
        raise BedError(f"process {process.pid} did not end {timeout:g} s after SIGKILL")


def processes_of(folder: Path) -> list[ProcessId]:
    """Every live process started for `folder` or one inside it, also those whose pid file was never written."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (started_for := _run_of(entry)) is not None and started_for.is_relative_to(folder):
            found.append(ProcessId.of(int(entry.name)))
    return [process for process in found if process is not None]


def _run_of(entry: Path) -> Path | None:
    """The run folder that a process of /proc was started for, or None."""
    try:
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return None  # gone meanwhile, or another user's
    mark = f"{RUN_VARIABLE}=".encode()
    return next((Path(os.fsdecode(text.removeprefix(mark))) for text in variables if text.startswith(mark)), None)


def kill_all(folder: Path, timeout: float = 60.0) -> None:
    """End every process of `folder` at once; for what a crash left, where nobody waits for a clean end.

    None of them sees another die: all stand still before the first is killed.
    """
    deadline = time.monotonic() + timeout
    while left := processes_of(folder):  # again, since a dying process may just have started another
        if time.monotonic() > deadline:
            raise BedError(f"processes of {folder} do not end: {[process.pid for process in left]}")
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in left:
                process.send(number)
        for process in left:
            kill_and_wait(process)
