"""A driver that gives up by an exception of its own because too many of its tasks failed."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def shard(number: int) -> int:
    if number % 7 == 0:
        raise OSError(f"s3 read timed out for object part-{number} of gpt2")
    if number % 11 == 0:
        raise PermissionError(f"part-{number} may not be read")
    return number


def main() -> None:
    ray.init()
    load = ray.remote(num_cpus=0.5, max_retries=0)(shard)
    failed = 0
    for result in [load.remote(number) for number in range(1, 41)]:
        try:
            ray.get(result)
        except OSError as error:
            failed += 1
            print(f"skipped: {type(error).__name__}", flush=True)
    if failed > 5:
        raise RuntimeError(f"too many failed shards: {failed} of 40 (limit 5)")


if __name__ == "__main__":
    main()
