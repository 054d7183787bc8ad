"""Ray Train: the checkpoint of an epoch cannot be stored."""

import errno
from pathlib import Path
from tempfile import mkdtemp

import ray.train
from ray.train import Checkpoint
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def save(model, folder):
    file = Path(folder) / "model.bin"
    if len(model) > 2000:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))
    file.write_bytes(model)


def train_loop():
    for epoch in range(4):
        folder = mkdtemp(prefix="rk-checkpoint-")
        save(b"w" * 1000 * (epoch + 1), folder)
        ray.train.report({"epoch": epoch}, checkpoint=Checkpoint.from_directory(folder))


DataParallelTrainer(
    train_loop,
    scaling_config=ray.train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 0.5}),
    run_config=ray.train.RunConfig(name="weekly", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
