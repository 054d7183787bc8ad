"""Ray Train with torch: the layers of a model do not fit."""

from tempfile import mkdtemp

import ray.train
import torch
from ray.train.torch import TorchTrainer
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def train_loop(config):
    model = Classifier(config["classes"])
    for step in range(3):
        loss = model(torch.rand(4, 8)).sum()
        ray.train.report({"loss": float(loss), "step": step})


trainer = TorchTrainer(
    train_loop,
    train_loop_config={"classes": 10},
    scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
    run_config=ray.train.RunConfig(name="classifier", storage_path=mkdtemp(prefix="rk-results-")),
)
print(trainer.fit())
