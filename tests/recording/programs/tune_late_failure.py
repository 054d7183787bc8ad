"""Ray Tune: a trial fails in its third iteration, after it had reported; the others go on."""

import math
from tempfile import mkdtemp

from ray import tune
from ray.tune.schedulers import ASHAScheduler


def train_model(config):
    weight = 1.0
    for _ in range(6):
        weight = weight * config["momentum"] - 1.5
        tune.report({"loss": math.log(weight)})


results = tune.Tuner(
    tune.with_resources(train_model, {"cpu": 0.5}),
    param_space={"momentum": tune.grid_search([2.2, 4.0, 5.0])},
    tune_config=tune.TuneConfig(metric="loss", mode="min", scheduler=ASHAScheduler(max_t=6)),
    run_config=tune.RunConfig(name="momentum", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
print(results.num_errors, "failed")
