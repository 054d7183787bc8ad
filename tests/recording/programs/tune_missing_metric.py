"""Ray Tune: the metric to look at is spelled in another way than the trials report it."""

from tempfile import mkdtemp

from ray import tune


def objective(config):
    tune.report({"val_loss": config["x"] ** 2})


results = tune.Tuner(
    tune.with_resources(objective, {"cpu": 0.5}),
    param_space={"x": tune.grid_search([1, 2])},
    tune_config=tune.TuneConfig(metric="valid_loss", mode="min"),
    run_config=tune.RunConfig(name="metric", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
print(results.get_best_result().config)
