"""A library calls sys.exit inside of an actor's method."""

import sys

import ray


def connect(host):
    print(f"licence server {host} refused: no seats left", file=sys.stderr, flush=True)
    sys.exit(2)


@ray.remote
class Solver:
    def solve(self, size):
        if size > 3:
            connect("lic-07")
        return size


ray.init()
solver = Solver.remote()
print([ray.get(solver.solve.remote(size)) for size in range(6)])
