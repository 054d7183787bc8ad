"""Three actors with names of their own; the process of one dies after its last words."""

from __future__ import annotations

import os
import sys

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


class Trainer:
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def step(self, number: int) -> float:
        if self.rank == 2 and number == 3:
            print("CUDA error: out of memory while allocating 4.00 GiB", file=sys.stderr, flush=True)
            os._exit(137)
        print(f"rank {self.rank} step {number}", flush=True)
        return 1.0 / (number + 1)


def main() -> None:
    ray.init()
    make = ray.remote(num_cpus=0.3)(Trainer)
    trainers = [make.options(name=f"trainer-{rank}").remote(rank) for rank in range(3)]
    for number in range(6):
        ray.get([trainer.step.remote(number) for trainer in trainers])


if __name__ == "__main__":
    main()
