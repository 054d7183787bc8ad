"""Tasks on workers that run until something happens to their pods."""

from __future__ import annotations

import time
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the image has it, our environment does not


def simulate(seed: int) -> int:
    print(f"simulation {seed} runs", flush=True)
    time.sleep(3)  # until that is told: after this its container may not live long
    Path("/tmp/work-has-begun").touch()
    time.sleep(600)
    return seed


def main() -> None:
    ray.init(log_to_driver=False)
    there = ray.remote(num_cpus=1, max_retries=0)(simulate)
    print(f"done: {ray.get([there.remote(seed) for seed in range(2)])}")


if __name__ == "__main__":
    main()
