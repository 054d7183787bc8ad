"""A thousand shards, of which 45 fail in three ways; the driver counts and gives up."""

import sys

import ray


@ray.remote(num_cpus=0.5, max_retries=0)
def process(shard):
    if shard % 36 == 7:
        raise ValueError(f"checksum mismatch in s3://bucket/part-{shard:05}.parquet: got 9f3{shard}, expected 77a")
    if shard % 71 == 11:
        raise TimeoutError(f"reading part-{shard:05} timed out after {shard % 7 + 20} s")
    if shard % 250 == 99:
        raise PermissionError(f"403 Forbidden: part-{shard:05}")
    return shard


def main():
    ray.init()
    refs = [process.remote(shard) for shard in range(1000)]
    failed = 0
    for ref in refs:
        try:
            ray.get(ref)
        except ray.exceptions.RayTaskError:
            failed += 1
    print(f"{len(refs) - failed} shards done", file=sys.stderr)
    if failed > 25:
        raise RuntimeError(f"too many failed shards: {failed} of {len(refs)} (limit 25)")


main()
