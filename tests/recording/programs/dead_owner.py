"""An actor makes objects and dies; whoever asks for them later is told that their owner is gone."""

import os
import time

import numpy as np
import ray


@ray.remote
class Loader:
    def load(self):
        return [ray.put(np.zeros(300_000)) for _ in range(3)]

    def crash(self):
        print("loader: lost the connection to the feature store, leaving", flush=True)
        os._exit(1)


@ray.remote
def mean(values):
    return float(values.mean())


ray.init()
loader = Loader.options(name="feature-loader").remote()
refs = ray.get(loader.load.remote())
loader.crash.remote()
time.sleep(3)
print(ray.get([mean.remote(ref) for ref in refs]))
