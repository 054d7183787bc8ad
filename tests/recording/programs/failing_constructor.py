"""An actor whose constructor raises; its methods are called all the same."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


class Model:
    def __init__(self, weights: str) -> None:
        print(f"loading {weights}", flush=True)
        raise OSError(f"weights {weights} have the wrong size")

    def predict(self, row: int) -> int:
        return row


def main() -> None:
    ray.init(log_to_driver=False)
    model = ray.remote(num_cpus=0.5)(Model).remote("resnet-50.bin")
    print(f"predicted: {ray.get([model.predict.remote(row) for row in range(5)])}")


if __name__ == "__main__":
    main()
