"""Ray Data feeds Ray Train: a row cannot be parsed while a worker iterates over its shard."""

from tempfile import mkdtemp

import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def to_features(row):
    return {"x": 1.0 / (int(row["id"]) - 37)}


def train_loop():
    shard = ray.train.get_dataset_shard("train")
    for batch in shard.iter_batches(batch_size=10):
        ray.train.report({"rows": len(batch["x"])})


ray.init()
rows = ray.data.range(60, override_num_blocks=6).map(to_features)
DataParallelTrainer(
    train_loop,
    datasets={"train": rows},
    scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.3}),
    run_config=ray.train.RunConfig(name="ctr", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
