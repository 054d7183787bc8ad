"""Tasks take more memory than the node may have, so that Ray's memory monitor kills their workers."""

from __future__ import annotations

import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not

MIB = 1 << 20
STEP_MIB, STEPS = 128, 40


def build_index(part: int) -> int:
    held = []
    for step in range(STEPS):
        held.append(bytearray(b"x" * (STEP_MIB * MIB)))
        print(f"part {part}: {(step + 1) * STEP_MIB} MiB held", flush=True)
        time.sleep(0.2)
    return len(held)


def main() -> None:
    ray.init(log_to_driver=False)
    part = ray.remote(build_index).options(max_retries=0).remote(1)
    print(f"index of {ray.get(part)} steps")


if __name__ == "__main__":
    main()
