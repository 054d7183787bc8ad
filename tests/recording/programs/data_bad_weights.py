"""Ray Data: the constructor of the class that scores batches cannot load its model."""

import json

import ray


class Scorer:
    def __init__(self, path):
        self.weights = json.loads('{"bias": 0.1,}')
        self.path = path

    def __call__(self, batch):
        batch["score"] = batch["id"] * self.weights["bias"]
        return batch


ray.init()
rows = ray.data.range(40, override_num_blocks=4)
print(rows.map_batches(Scorer, fn_constructor_args=("model.json",), concurrency=1, num_cpus=0.5).take(3))
