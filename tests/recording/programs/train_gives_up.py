"""Ray Train: a run is allowed one failure, and fails in the same way twice."""

from tempfile import mkdtemp

import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def train_loop():
    for step in range(4):
        if step == 2:
            raise TimeoutError("barrier of step 2: peer 10.0.0.7 did not answer within 30 s")
        ray.train.report({"step": step})


DataParallelTrainer(
    train_loop,
    scaling_config=ray.train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 0.4}),
    run_config=ray.train.RunConfig(
        name="stubborn",
        storage_path=mkdtemp(prefix="rk-results-"),
        failure_config=ray.train.FailureConfig(max_failures=1),
    ),
).fit()
