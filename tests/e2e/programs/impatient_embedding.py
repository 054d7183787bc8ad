"""Tasks for which no worker comes; the driver loses patience."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the image has it, our environment does not

PATIENCE_SECONDS = 15.0


def embed(batch: int) -> int:
    return batch


def main() -> None:
    ray.init(log_to_driver=False)
    waiting = [ray.remote(num_cpus=1)(embed).remote(batch) for batch in range(3)]
    print(f"embedded: {ray.get(waiting, timeout=PATIENCE_SECONDS)}")


if __name__ == "__main__":
    main()
