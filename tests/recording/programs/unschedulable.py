"""Tasks that want what no node has; the driver loses patience."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not

PATIENCE_SECONDS = 12.0  # longer than the collector's poll of the cluster's status


def embed(batch: int) -> int:
    return batch


def main() -> None:
    ray.init(log_to_driver=False)
    waiting = [ray.remote(num_gpus=4)(embed).remote(batch) for batch in range(3)]
    print(f"embedded: {ray.get(waiting, timeout=PATIENCE_SECONDS)}")


if __name__ == "__main__":
    main()
