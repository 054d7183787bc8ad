"""Ray Train as it was before its second version: rank 1 raises."""

import os
from tempfile import mkdtemp

os.environ["RAY_TRAIN_V2_ENABLED"] = "0"

import ray.train
from ray.train.torch import TorchTrainer


def train_loop():
    rank = ray.train.get_context().get_world_rank()
    for step in range(3):
        if rank == 1 and step == 2:
            raise ArithmeticError(f"gradient norm is inf at step {step}")
        ray.train.report({"step": step})


TorchTrainer(
    train_loop,
    scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.4}),
    run_config=ray.train.RunConfig(name="classic", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
