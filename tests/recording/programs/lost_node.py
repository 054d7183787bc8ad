"""Long tasks on the second node, which is killed while they run."""

from __future__ import annotations

import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def simulate(seed: int) -> int:
    print(f"simulation {seed} runs", flush=True)
    time.sleep(600)
    return seed


def main() -> None:
    ray.init(log_to_driver=False)
    there = ray.remote(num_cpus=0.25, resources={"elsewhere": 1}, max_retries=0)(simulate)
    print(f"done: {ray.get([there.remote(seed) for seed in range(3)])}")


if __name__ == "__main__":
    main()
