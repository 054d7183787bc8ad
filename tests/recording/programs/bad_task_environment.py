"""Tasks that want modules which nobody uploaded."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not

MODULES = ["file:///releases/7/features.zip"]


def predict(row: int) -> int:
    return row


def main() -> None:
    ray.init(log_to_driver=False)
    predicting = ray.remote(num_cpus=0.5)(predict).options(runtime_env={"py_modules": MODULES})
    print(f"predicted: {ray.get([predicting.remote(row) for row in range(3)])}")


if __name__ == "__main__":
    main()
