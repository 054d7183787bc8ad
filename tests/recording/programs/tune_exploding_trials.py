"""Ray Tune: one of three trials fails, and the job goes on without it."""

from __future__ import annotations

from tempfile import mkdtemp
from typing import Any

from ray import tune  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not


def objective(config: dict[str, Any]) -> dict[str, float]:
    if config["lr"] >= 1.0:
        raise OverflowError(f"loss exploded with lr={config['lr']}")
    return {"loss": config["lr"] * 2}


def main() -> None:
    run = tune.RunConfig(name="sweep", storage_path=mkdtemp(prefix="rk-results-"))
    space = {"lr": tune.grid_search([0.01, 0.1, 1.0])}
    trainable = tune.with_resources(objective, {"cpu": 0.5})
    results = tune.Tuner(trainable, param_space=space, run_config=run).fit()
    print(f"{len(results.errors)} of {len(results)} trials failed", flush=True)


if __name__ == "__main__":
    main()
