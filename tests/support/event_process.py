"""The event path in a process of its own that can be killed, and what its store holds."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


class EventProcess:
    """One life after another on the same spool folder and the same local store."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.spool = folder / "spool"
        self.store = folder / "store"
        self.port = 0
        self._settings = settings
        self._process: Process | None = None

    async def __aenter__(self) -> EventProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no process behind, however the test ended."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    async def start(self) -> None:
        """Return once it listens."""
        command = ["-m", "bench.programs.event_collector", str(self.spool), f"file://{self.store}", *self._settings]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=PIPE, cwd=REPOSITORY, limit=2**20
        )
        self.port = int((await self._line("ready ")).split()[1])

    async def kill(self) -> None:
        """End it as the kernel does when memory runs out."""
        process = self._running()
        process.kill()
        await process.communicate()

    async def end(self) -> int:
        """Let it flush and end; returns the bytes it could not ship."""
        process = self._running()
        process.terminate()
        left = int((await self._line("left ")).split()[1])
        await process.communicate()
        return left

    def objects(self) -> dict[str, bytes]:
        """What the store holds, by key."""
        files = [path for path in self.store.rglob("*.zst") if path.is_file()]
        return {path.relative_to(self.store).as_posix(): path.read_bytes() for path in files}

    def _running(self) -> Process:
        assert self._process is not None, "it was not started"
        return self._process

    async def _line(self, start: str) -> str:
        output = self._running().stdout
        while line := (await output.readline()).decode() if output else "":
            if line.startswith(start):
                return line
        raise AssertionError(f"the process ended before it printed {start!r}")
