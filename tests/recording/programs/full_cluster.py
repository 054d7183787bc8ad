"""Three actors want a CPU each where there are two: the third never starts."""

import ray


@ray.remote(num_cpus=1)
class Shard:
    def __init__(self, number):
        self.number = number

    def ready(self):
        return self.number


ray.init()
shards = [Shard.options(name=f"shard-{number}").remote(number) for number in range(3)]
print(ray.get([shard.ready.remote() for shard in shards], timeout=20))
