"""One task fails, and with it every task that needs its result, through two steps."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def load_shard(shard: int) -> list[int]:
    print(f"loading shard {shard}", flush=True)
    if shard == 2:
        raise FileNotFoundError(f"shard {shard} is not in /data/shards")
    return list(range(shard, shard + 10))


def normalise(shard: list[int]) -> list[float]:
    return [value / max(shard) for value in shard]


def train(*shards: list[float]) -> float:
    return sum(map(sum, shards))


def main() -> None:
    ray.init(log_to_driver=False)
    step = ray.remote(num_cpus=0.5)
    shards = [step(load_shard).remote(number) for number in range(4)]
    ready = [step(normalise).remote(shard) for shard in shards]
    models = [step(train).remote(*ready) for _ in range(3)]
    ray.wait(models, num_returns=len(models))
    print(f"losses: {ray.get(models)}")


if __name__ == "__main__":
    main()
