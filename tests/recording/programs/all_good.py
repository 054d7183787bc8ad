"""Six hundred tasks and an actor, and nothing fails."""

import ray


@ray.remote(num_cpus=0.5)
def clean(row):
    return row.strip().lower()


@ray.remote
class Sink:
    def __init__(self):
        self.rows = []

    def add(self, rows):
        self.rows += rows
        return len(self.rows)


ray.init()
sink = Sink.remote()
rows = ray.get([clean.remote(f" Row {n} ") for n in range(600)])
print(ray.get(sink.add.remote(rows[:300])), ray.get(sink.add.remote(rows[300:])))
