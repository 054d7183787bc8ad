"""Ray Train: a worker fails once, the run is allowed a failure, and it ends well."""

from pathlib import Path
from tempfile import mkdtemp

import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

MARK = Path(mkdtemp(prefix="rk-mark-")) / "failed-once"


def train_loop(config):
    rank = ray.train.get_context().get_world_rank()
    for step in range(3):
        if rank == 0 and step == 1 and not Path(config["mark"]).exists():
            Path(config["mark"]).touch()
            raise ConnectionResetError("the parameter server closed the connection")
        ray.train.report({"step": step})


DataParallelTrainer(
    train_loop,
    train_loop_config={"mark": str(MARK)},
    scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.4}),
    run_config=ray.train.RunConfig(
        name="elastic",
        storage_path=mkdtemp(prefix="rk-results-"),
        failure_config=ray.train.FailureConfig(max_failures=2),
    ),
).fit()
print("trained")
