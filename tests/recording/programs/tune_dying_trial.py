"""Ray Tune: the process of one trial dies, and the sweep goes on."""

import os
import sys
from tempfile import mkdtemp

from ray import tune


def simulate(config):
    if config["mesh"] == 512:
        print("PETSC ERROR: Caught signal number 11 SEGV: mesh 512 needs 96 GB", file=sys.stderr, flush=True)
        os._exit(59)
    tune.report({"residual": 1.0 / config["mesh"]})


results = tune.Tuner(
    tune.with_resources(simulate, {"cpu": 0.5}),
    param_space={"mesh": tune.grid_search([64, 128, 512])},
    run_config=tune.RunConfig(name="mesh", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
print(f"{len(results) - results.num_errors} of {len(results)} meshes done")
