"""Ray Train: workers ask for a dataset under a name that the trainer was not given."""

from tempfile import mkdtemp

import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def train_loop():
    shard = ray.train.get_dataset_shard("validation")
    for batch in shard.iter_batches(batch_size=8):
        ray.train.report({"rows": len(batch["id"])})


DataParallelTrainer(
    train_loop,
    datasets={"train": ray.data.range(32)},
    scaling_config=ray.train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 0.4}),
    run_config=ray.train.RunConfig(name="validated", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
