"""Ray Data: a model that is kept in actors meets a batch that it cannot score."""

from __future__ import annotations

from typing import Any

import numpy as np  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not
import ray  # type: ignore[import-not-found, unused-ignore]

Batch = dict[str, Any]


class Scorer:
    def __init__(self) -> None:
        self.weights = np.ones(4)

    def __call__(self, batch: Batch) -> Batch:
        features = np.ones((len(batch["id"]), 5 if 60 in batch["id"] else 4))
        return {"score": features @ self.weights}


def main() -> None:
    ray.init()
    scored = ray.data.range(100, override_num_blocks=4).map_batches(Scorer, concurrency=1, batch_size=25)
    print(f"scored {scored.materialize().count()}", flush=True)


if __name__ == "__main__":
    main()
