"""Ray Tune: every trial fails in its own way of the same kind, and there is no best one."""

from tempfile import mkdtemp

from ray import tune


def train_model(config):
    batches = make_batches(config["batch"])
    tune.report({"loss": len(batches)})


def make_batches(size):
    rows = list(range(100))
    if 100 % size:
        raise ValueError(f"cannot reshape array of size 100 into shape ({size},)")
    return [rows[start : start + size] for start in range(0, 100, size)]


tuner = tune.Tuner(
    tune.with_resources(train_model, {"cpu": 0.5}),
    param_space={"batch": tune.grid_search([48, 64, 96])},
    run_config=tune.RunConfig(name="batches", storage_path=mkdtemp(prefix="rk-results-")),
)
best = tuner.fit().get_best_result(metric="loss", mode="min")
print(best.config)
