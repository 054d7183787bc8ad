"""Ray Tune with a class: one setting is missing from what its setup reads."""

from tempfile import mkdtemp

from ray import tune


class Experiment(tune.Trainable):
    def setup(self, config):
        self.lr = config["lr"]
        self.decay = config["weight_decay"]

    def step(self):
        return {"loss": self.lr * self.decay, "done": True}


results = tune.Tuner(
    tune.with_resources(Experiment, {"cpu": 0.5}),
    param_space={"lr": tune.grid_search([0.1, 0.2])},
    run_config=tune.RunConfig(name="decay", storage_path=mkdtemp(prefix="rk-results-")),
).fit()
if results.errors:
    raise SystemExit(f"{len(results.errors)} of {len(results)} trials failed")
