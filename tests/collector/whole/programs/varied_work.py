"""Runs under Ray's own Python as a job: tasks, failures, retries, actors that restart, placement groups, Serve.

Arguments: for how many seconds tasks are run, a free port for Serve, a file whose appearance ends the job.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not
from ray import serve  # type: ignore[import-not-found, unused-ignore]
from ray.util.placement_group import (  # type: ignore[import-not-found, unused-ignore]
    placement_group,
    remove_placement_group,
)


def talk(number: int) -> int:
    print(f"task {number} says something on standard output", flush=True)
    print(f"task {number} complains", file=sys.stderr, flush=True)
    return number


def fail(number: int) -> None:
    raise ValueError(f"task {number} fails on purpose")


def die() -> None:
    os._exit(1)


class Fragile:
    """Dies when told to and comes again."""

    def work(self) -> int:
        print("an actor works", flush=True)
        return os.getpid()

    def die(self) -> None:
        os._exit(1)


def run_tasks(seconds: float) -> None:
    here = ray.remote(num_cpus=0.1)(talk)
    elsewhere = ray.remote(num_cpus=0.1, resources={"elsewhere": 1})(talk)
    failing = ray.remote(num_cpus=0.1, max_retries=1, retry_exceptions=True)(fail)
    until = time.monotonic() + seconds
    for number in itertools.takewhile(lambda _: time.monotonic() < until, itertools.count()):
        waiting = [here.remote(number) for _ in range(20)] + [elsewhere.remote(number) for _ in range(5)]
        ray.get(waiting)
        with contextlib.suppress(ValueError):
            ray.get(failing.remote(number))
    with contextlib.suppress(ray.exceptions.WorkerCrashedError):
        ray.get(ray.remote(num_cpus=0.1, max_retries=1)(die).remote())


def run_actors() -> None:
    fragile = ray.remote(num_cpus=0.1, max_restarts=1)(Fragile).remote()
    ray.get(fragile.work.remote())
    with contextlib.suppress(ray.exceptions.RayActorError):
        ray.get(fragile.die.remote())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(ray.exceptions.RayActorError):
            ray.get(fragile.work.remote())
            return
        time.sleep(0.1)


def run_placement_groups() -> None:
    kept = placement_group([{"CPU": 0.1}, {"elsewhere": 1}], strategy="SPREAD", name="kept")
    removed = placement_group([{"CPU": 0.1}], name="removed")
    ray.get([kept.ready(), removed.ready()])
    remove_placement_group(removed)


class Greeter:
    """A deployment of Serve."""

    def __call__(self) -> str:
        return "hello"


def run_serve(port: int) -> None:
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    deployment = serve.deployment(ray_actor_options={"num_cpus": 0.1})(Greeter)
    serve.run(deployment.bind(), name="greeter", route_prefix="/greeter")


def main(seconds: float, port: int, end: Path) -> None:
    ray.init()
    run_tasks(seconds)
    run_placement_groups()
    run_actors()
    run_serve(port)
    while not end.exists():
        time.sleep(0.1)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
