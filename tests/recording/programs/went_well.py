"""Tasks, one of them after a second try, and an actor: everything succeeds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def square(number: int) -> int:
    print(f"{number} squared", flush=True)
    return number * number


def fetch(folder: str) -> str:
    visited = Path(folder, "visited")
    if not visited.exists():
        visited.touch()
        raise ConnectionError("the server did not answer")
    return "a page"


class Total:
    def __init__(self) -> None:
        self.value = 0

    def add(self, number: int) -> int:
        self.value += number
        return self.value


def main() -> None:
    ray.init(log_to_driver=False)
    squares = [ray.remote(num_cpus=0.5)(square).remote(number) for number in range(20)]
    total = ray.remote(num_cpus=0.5)(Total).remote()
    sums = [total.add.remote(number) for number in ray.get(squares)]
    print(f"total: {ray.get(sums)[-1]}")
    with tempfile.TemporaryDirectory() as folder:
        patient = ray.remote(num_cpus=0.5, max_retries=2, retry_exceptions=[ConnectionError])(fetch)
        print(f"got {ray.get(patient.remote(folder))}")


if __name__ == "__main__":
    main()
