"""Ray Train: the process of rank 1 dies after its last words."""

from __future__ import annotations

import os
import sys
from tempfile import mkdtemp

import ray.train  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # type: ignore[import-not-found, unused-ignore]


def train_loop() -> None:
    rank = ray.train.get_context().get_world_rank()
    for epoch in range(8):
        if rank == 1 and epoch == 3:
            print("CUDA error: out of memory while allocating 4.00 GiB", file=sys.stderr, flush=True)
            os._exit(134)
        ray.train.report({"loss": 1.0 / (epoch + 1)})


def main() -> None:
    scaling = ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})
    run = ray.train.RunConfig(name="night", storage_path=mkdtemp(prefix="rk-results-"))
    DataParallelTrainer(train_loop, scaling_config=scaling, run_config=run).fit()


if __name__ == "__main__":
    main()
