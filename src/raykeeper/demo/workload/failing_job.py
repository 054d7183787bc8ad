"""The job of `raykeeper demo`, run by Ray's own Python: a little of everything that can go right or wrong.

It fails in the end, because some of its tasks did: that is what the history is asked about afterwards.
"""

# ruff: noqa: T201 - a job speaks by printing
from __future__ import annotations

import os
import tempfile
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # Ray's environment has it, ours does not
from ray.util.placement_group import (  # type: ignore[import-not-found, unused-ignore]
    placement_group,
    remove_placement_group,
)


def square(number: int) -> int:
    """Succeeds."""
    print(f"{number} squared is {number * number}")
    return number * number


def divide(dividend: int, divisor: int) -> float:
    """Fails where the divisor is zero."""
    print(f"dividing {dividend} by {divisor}")
    return dividend / divisor


def fetch(page: int, folder: str) -> str:
    """Fails at the first attempt and succeeds at the second."""
    visited = Path(folder, str(page))
    if not visited.exists():
        visited.touch()
        raise ConnectionError(f"page {page} did not answer")
    return f"page {page}"


def crash() -> None:
    """Takes its worker process down."""
    print("this worker is about to be gone", flush=True)
    os._exit(1)


class Counter:
    """An actor that forgets everything when its process dies, and is started again."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def die(self) -> None:
        os._exit(1)


def outcome(name: str, references: list[ray.ObjectRef]) -> list[str]:
    """Wait for all; what failed, a line each."""
    failures = []
    for reference in references:
        try:
            ray.get(reference)
        except ray.exceptions.RayError as error:
            failures.append(f"{name}: {str(error).strip().splitlines()[-1]}")
    print(f"{name}: {len(references) - len(failures)} succeeded, {len(failures)} failed")
    return failures


def run_tasks(folder: str) -> list[str]:
    squares = [ray.remote(square).remote(number) for number in range(20)]
    quotients = [ray.remote(divide).remote(number, number % 4) for number in range(8)]
    retrying = ray.remote(max_retries=2, retry_exceptions=[ConnectionError])(fetch)
    pages = [retrying.remote(page, folder) for page in range(3)]
    crashes = [ray.remote(max_retries=1)(crash).remote()]
    named = {"square": squares, "divide": quotients, "fetch": pages, "crash": crashes}
    return [line for name, references in named.items() for line in outcome(name, references)]


def run_actor() -> list[str]:
    counter = ray.remote(max_restarts=1, max_task_retries=-1)(Counter).remote()
    ray.get(counter.add.remote(40))
    failures = outcome("Counter.die", [counter.die.options(max_task_retries=0).remote()])
    print(f"the counter was at 40, died, and starts again at {ray.get(counter.add.remote(2))}")
    return failures


def run_in_placement_group() -> None:
    group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy="PACK", name="demo-group")
    ray.get(group.ready())
    remove_placement_group(group)


def main() -> None:
    ray.init(log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        failures = run_tasks(folder)
    failures += run_actor()
    run_in_placement_group()
    if failures:
        raise SystemExit("\n".join([f"{len(failures)} tasks failed for good:", *failures]))


if __name__ == "__main__":
    main()
