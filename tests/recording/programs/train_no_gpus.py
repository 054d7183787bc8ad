"""Ray Train waits for GPUs that the cluster does not have, until somebody ends it."""

from tempfile import mkdtemp

import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def train_loop():
    ray.train.report({"loss": 1.0})


DataParallelTrainer(
    train_loop,
    scaling_config=ray.train.ScalingConfig(num_workers=4, use_gpu=True),
    run_config=ray.train.RunConfig(name="pretrain", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
