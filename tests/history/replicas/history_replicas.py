"""History servers as processes of their own, each with a cache folder, and a load balancer over them."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bed.processes import Process, kill_all
from raykeeper.history.http.responses import PROGRESS_HEADER
from support.conditions import eventually

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "history", "--bind=127.0.0.1:0")
START_SECONDS = 90.0  # two, and many more where other tests use the cores
WAIT_SECONDS = 120.0
PAUSE_SECONDS = 0.05  # so that the cores are left to those who may answer


@dataclass
class Replica:
    """One server, which may live several times on the same cache folder."""

    folder: Path
    environment: Mapping[str, str]
    arguments: Sequence[str] = ()
    lives: int = 0
    url: str = ""
    in_flight: int = 0
    """Requests that it has not answered yet."""

    def __post_init__(self) -> None:
        self.cache = self.folder / "cache"
        self._process: Process

    async def start(self) -> None:
        """Return once it listens."""
        self.lives += 1
        command = [*COMMAND, f"--cache-dir={self.cache}", *self.arguments]
        self._process = Process(f"history-{self.lives}", command, self.folder, self.environment)
        self._process.start()
        port = await eventually(self._port, seconds=START_SECONDS)
        self.url = f"http://127.0.0.1:{port}"

    @property
    def pid(self) -> int:
        found = self._process.id
        assert found is not None, "it was started"
        return found.pid

    def kill(self) -> None:
        """End it at once, as a lost machine does."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """End what is left of it, its ingest too."""
        kill_all(self.folder)

    @property
    def is_ingesting(self) -> bool:
        return any(self.cache.glob("work/*/*"))

    def log_lines(self) -> list[dict[str, Any]]:
        """All it ever said."""
        texts = [log.read_text() for log in sorted((self.folder / "log").glob("*.log"))]
        return [json.loads(line) for text in texts for line in text.split("\n")[:-1] if line.startswith("{")]

    def lose_cache(self) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)

    def lose_files(self, dice: random.Random) -> None:
        """Delete about half of the files in its cache."""
        for path in self.cache.rglob("*"):
            if dice.random() < 0.5 and not path.is_dir():
                path.unlink(missing_ok=True)

    async def _port(self) -> int | None:
        assert self._process.alive, self._process.last_lines()
        lines = [json.loads(line) for line in self._process.log_file.read_text().split("\n")[:-1]]
        return next((line["port"] for line in lines if line["msg"] == "listening"), None)


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    is_whole: bool
    """Whether the server had read all of the session."""


@dataclass
class RoundRobin:
    """Asks one replica after the other, and the next one where a connection breaks or a replica is unavailable."""

    replicas: Sequence[Replica]
    http: aiohttp.ClientSession
    turn: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    async def ask(self, path: str) -> Answer:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                self.turn += 1
                try:
                    answer = await self.ask_one(self.replicas[self.turn % len(self.replicas)], path)
                except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                    self.outcomes["broken"] += 1
                else:
                    self.outcomes["unavailable" if answer.status == 503 else "answered"] += 1
                    if answer.status != 503:
                        return answer
                await asyncio.sleep(PAUSE_SECONDS)

    async def ask_one(self, replica: Replica, path: str) -> Answer:
        replica.in_flight += 1
        try:
            async with self.http.get(replica.url + path) as response:
                text = await response.text()
                body = json.loads(text) if response.content_type == "application/json" else text
                return Answer(response.status, body, PROGRESS_HEADER not in response.headers)
        finally:
            replica.in_flight -= 1
