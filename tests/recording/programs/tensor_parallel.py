"""An LLM engine: an engine actor with two rank actors. One rank loses its process, the engine gives up."""

import os
import sys
import time

import ray


@ray.remote(num_cpus=0.3)
class Rank:
    def __init__(self, rank):
        self.rank = rank

    def forward(self, tokens):
        time.sleep(0.02)
        if self.rank == 1 and len(tokens) > 12:
            print("NCCL WARN Cuda failure 2 'out of memory'", file=sys.stderr)
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr, flush=True)
            os._exit(1)
        return tokens + [len(tokens)]


@ray.remote(num_cpus=0.3)
class Engine:
    def __init__(self):
        self.ranks = [Rank.options(name=f"tp-rank-{rank}").remote(rank) for rank in range(2)]

    def generate(self, prompt):
        tokens = list(prompt)
        for _ in range(8):
            tokens = ray.get([rank.forward.remote(tokens) for rank in self.ranks])[0]
        return tokens


ray.init()
engine = Engine.options(name="llm-engine").remote()
print(ray.get(engine.generate.remote([1, 2, 3])))
print(ray.get(engine.generate.remote(list(range(9)))))
