"""Ray Tune by `tune.run`, which raises when a trial failed."""

from tempfile import mkdtemp

from ray import tune


def fold(number):
    splits = [0.8, 0.1, 0.1]
    return splits[number]


def crossvalidate(config):
    tune.report({"score": fold(config["fold"])})


tune.run(
    crossvalidate,
    config={"fold": tune.grid_search([0, 1, 3])},
    resources_per_trial={"cpu": 0.5},
    storage_path=mkdtemp(prefix="rk-results-"),
)
