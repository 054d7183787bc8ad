"""An actor asks for a licence that no node offers."""

import ray


@ray.remote(resources={"solver_licence": 1})
class Optimizer:
    def solve(self):
        return 1


ray.init()
optimizer = Optimizer.options(name="optimizer").remote()
print(ray.get(optimizer.solve.remote(), timeout=15))
