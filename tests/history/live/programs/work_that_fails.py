"""Runs under Ray's own Python as a job, and leaves something of every kind: what failed, what died, what lives on.

Argument: `works` for a job that ends, `stays` for one that is at work until the cluster ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not
from ray.util.placement_group import (  # type: ignore[import-not-found, unused-ignore]
    placement_group,
    remove_placement_group,
)

SECRET = {"env_vars": {"DB_PASSWORD": "hunter2"}}
SMALL = {"num_cpus": 0.1}


def square(number: int) -> int:
    print(f"squares {number}", flush=True)
    return number * number


def nest(number: int) -> int:
    result: int = ray.get(ray.remote(**SMALL)(square).remote(number))
    return result


def fail(number: int) -> None:
    print(f"fails with {number}", file=sys.stderr, flush=True)
    raise ValueError(f"{number} is wrong on purpose")


def crash() -> None:
    os._exit(1)


def wait() -> None:
    print("waits for the end of the cluster", flush=True)
    time.sleep(3600)


def begin(path: str) -> None:
    """Can be cancelled between two naps."""
    Path(path).touch()
    while True:
        time.sleep(0.05)


class Fragile:
    """Dies when told to and comes again."""

    def work(self) -> int:
        print("an actor works", flush=True)
        return os.getpid()

    def die(self) -> None:
        os._exit(1)


class Broken:
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("broken from the start")


def count(number: int) -> Iterator[int]:
    for item in range(number):  # noqa: UP028 - Ray sends into what yields, and a range takes nothing
        yield item


class Outer:
    """Ray calls the methods of a class within another by the last part of its name."""

    class Inner:
        """Tells what it is called, and works on several things at a time."""

        def __init__(self, name: str) -> None:
            self._name = name

        async def work(self, number: int) -> int:
            await asyncio.sleep(0.01)
            return number

        async def fail(self) -> None:
            raise ValueError("asynchronous and wrong")

        def __repr__(self) -> str:
            return f"Inner({self._name!r})"


def run_tasks() -> None:
    squares, failing = ray.remote(**SMALL)(square), ray.remote(**SMALL, max_retries=1, retry_exceptions=True)(fail)
    ray.get([squares.remote(number) for number in range(8)])
    ray.get(ray.remote(**SMALL)(nest).remote(3))
    ray.get(squares.options(name="with a secret", runtime_env=SECRET).remote(9))
    with contextlib.suppress(ValueError):
        ray.get(failing.remote(7))
    with contextlib.suppress(ray.exceptions.WorkerCrashedError):
        ray.get(ray.remote(**SMALL, max_retries=1)(crash).remote())


def run_actors() -> None:
    """One dies and comes again to stay, one is killed, one never comes to be."""
    fragile = ray.remote(**SMALL, max_restarts=1)(Fragile)
    kept = fragile.options(name="kept", namespace="live", lifetime="detached", max_task_retries=-1).remote()
    killed = fragile.options(max_restarts=0).remote()
    ray.get([kept.work.remote(), killed.work.remote()])
    with contextlib.suppress(ray.exceptions.RayActorError):
        ray.get(kept.die.options(max_task_retries=0).remote())
    ray.get(kept.work.remote())
    ray.kill(killed)
    broken = ray.remote(**SMALL)(Broken).remote()
    with contextlib.suppress(ray.exceptions.RayActorError):
        ray.get(broken.__ray_ready__.remote())


def run_other_kinds() -> None:
    """Generators, an actor within a class with a name of its own, a task that is cancelled."""
    for reference in ray.remote(**SMALL)(count).remote(3):
        ray.get(reference)
    inner = ray.remote(**SMALL, max_concurrency=3)(Outer.Inner).remote("täglich")
    ray.get([inner.work.remote(number) for number in range(5)])
    with contextlib.suppress(ValueError):
        ray.get(inner.fail.remote())
    with tempfile.TemporaryDirectory() as folder:
        began = Path(folder) / "began"
        cancelled = ray.remote(**SMALL)(begin).remote(str(began))
        while not began.exists():
            time.sleep(0.1)
    ray.cancel(cancelled)
    with contextlib.suppress(ray.exceptions.TaskCancelledError):
        ray.get(cancelled)


def run_placement_groups() -> None:
    kept = placement_group([{"CPU": 0.1}, {"CPU": 0.1}], strategy="PACK", name="kept", lifetime="detached")
    removed = placement_group([{"CPU": 0.1}], name="removed")
    ray.get([kept.ready(), removed.ready()])
    remove_placement_group(removed)


def work() -> None:
    run_tasks()
    run_actors()
    run_other_kinds()
    run_placement_groups()


def stay() -> None:
    """One task runs and one waits for a resource that no node has, until the cluster ends."""
    running = ray.remote(**SMALL)(wait).remote()
    waiting = ray.remote(resources={"nowhere": 1})(wait).remote()
    ray.get([running, waiting])


if __name__ == "__main__":
    ray.init()
    {"works": work, "stays": stay}[sys.argv[1]]()
