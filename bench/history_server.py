"""A history server and a bucket of a benchmark's own, as processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bed.minio import BUCKET, Minio
from bed.ports import free_port
from bed.runs import end_run, new_run
from bench.sessions import SessionSpec
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

ANSWER_SECONDS = 900.0


@dataclass(frozen=True)
class Bucket:
    """Where the sessions are."""

    url: str
    environment: dict[str, str]

    def open(self) -> ObjectStore:
        return open_store(parse_store_url(self.url, self.environment))


@contextlib.contextmanager
def a_bucket(prefix: str) -> Iterator[Bucket]:
    """An empty one, in a MinIO on this machine."""
    folder = new_run()
    minio = Minio.create(folder / "minio")
    minio.up()
    url = f"s3://{BUCKET}/{prefix}?endpoint={minio.endpoint}&path_style=true"
    try:
        yield Bucket(url, {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key})
    finally:
        end_run(folder)


@dataclass(frozen=True)
class Server:
    """One that listens."""

    pid: int
    address: str
    """Its URL, for a browser."""
    http: aiohttp.ClientSession

    async def ask(self, spec: SessionSpec, path: str) -> bytes:
        """The answer's body; anything but 200 is the benchmark's own mistake."""
        async with self.http.get(f"/s/{spec.id}/{path}") as answer:
            body = await answer.read()
            assert answer.status == 200, f"{path}: {answer.status}"
            return body


@contextlib.asynccontextmanager
async def a_history_server(bucket: Bucket, cache: Path) -> AsyncIterator[Server]:
    """With its default settings."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("raykeeper")), "history", f"--store={bucket.url}"]
    flags = [f"--bind=127.0.0.1:{port}", f"--cache-dir={cache}", "--log-level=error"]
    process = await asyncio.create_subprocess_exec(*command, *flags, env=os.environ | bucket.environment)
    try:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        address = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession(address, timeout=timeout) as http:
            await _listening(http)
            yield Server(process.pid, address, http)
    finally:
        process.terminate()
        await process.wait()


async def _listening(http: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with http.get("/readz"):
                    return
            await asyncio.sleep(0.1)
