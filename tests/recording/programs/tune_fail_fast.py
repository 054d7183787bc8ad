"""Ray Tune ends the sweep with the first trial that fails."""

from tempfile import mkdtemp

from ray import tune


def objective(config):
    vocabulary = {"the": 1, "a": 2}
    for word in config["text"].split():
        tune.report({"token": vocabulary[word]})


tune.Tuner(
    tune.with_resources(objective, {"cpu": 0.5}),
    param_space={"text": tune.grid_search(["the a", "a the", "the unknown"])},
    run_config=tune.RunConfig(
        name="words",
        storage_path=mkdtemp(prefix="rk-results-"),
        failure_config=tune.FailureConfig(fail_fast="raise"),
    ),
).fit()
