"""Ray Train with torch: a sample is broken, and the worker process of the data loader says so."""

from tempfile import mkdtemp

import ray.train
import torch
from ray.train.torch import TorchTrainer
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 7:
            raise ValueError(f"scan {index} has 3 channels, expected 1")
        return torch.zeros(4)


def train_loop():
    for step, batch in enumerate(DataLoader(Scans(), batch_size=2, num_workers=1)):
        ray.train.report({"step": step, "size": len(batch)})


TorchTrainer(
    train_loop,
    scaling_config=ray.train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 0.5}),
    run_config=ray.train.RunConfig(name="scans", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
