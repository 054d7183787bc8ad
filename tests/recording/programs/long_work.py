"""Tasks that run until somebody or something ends them."""

from __future__ import annotations

import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def train_epoch(epoch: int) -> int:
    print(f"epoch {epoch} begins", flush=True)
    time.sleep(600)
    return epoch


def main() -> None:
    ray.init(log_to_driver=False)
    epochs = [ray.remote(num_cpus=0.5)(train_epoch).remote(epoch) for epoch in range(2)]
    print("training", flush=True)
    print(f"done: {ray.get(epochs)}")


if __name__ == "__main__":
    main()
