"""An actor keeps whatever it was ever asked for, until Ray's memory monitor kills it."""

import time

import numpy as np
import ray

MIB = 1 << 20


@ray.remote(max_restarts=0)
class Cache:
    def __init__(self):
        self.held = []

    def fill(self):
        while True:
            self.held.append(np.ones(64 * MIB, np.uint8))
            time.sleep(0.02)


ray.init()
cache = Cache.options(name="embedding-cache").remote()
print(ray.get(cache.fill.remote()))
