"""Ray Train: the loss of rank 1 is no number any more in epoch 4."""

from __future__ import annotations

from tempfile import mkdtemp

import ray.train  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # type: ignore[import-not-found, unused-ignore]


def loss_of(epoch: int, rank: int) -> float:
    if rank == 1 and epoch == 4:
        raise FloatingPointError(f"loss is NaN at epoch {epoch} on rank {rank}")
    return 1.0 / (epoch + 1)


def train_loop() -> None:
    rank = ray.train.get_context().get_world_rank()
    for epoch in range(8):
        ray.train.report({"loss": loss_of(epoch, rank)})


def main() -> None:
    scaling = ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})
    run = ray.train.RunConfig(name="night", storage_path=mkdtemp(prefix="rk-results-"))
    DataParallelTrainer(train_loop, scaling_config=scaling, run_config=run).fit()


if __name__ == "__main__":
    main()
