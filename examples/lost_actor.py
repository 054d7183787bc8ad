"""A counter keeps its state in memory, and its process ends in the middle of the work, as if it were out of memory.

Run it with `raykeeper demo -- python examples/lost_actor.py`; the report says which actor died, how, and who waited.
"""

from __future__ import annotations

import os

import ray


@ray.remote
class Counter:
    """Adds numbers until it is given one too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0

    def add(self, number: int) -> int:
        self._total += number
        if self._total > self._limit:
            print(f"total {self._total} is over the limit of {self._limit}", flush=True)
            os._exit(137)  # what the kernel's out-of-memory killer leaves behind
        return self._total


def main() -> None:
    ray.init()
    counter = Counter.options(name="counter").remote(limit=20)
    for number in range(10):
        print(f"total so far: {ray.get(counter.add.remote(number))}")


if __name__ == "__main__":
    main()
