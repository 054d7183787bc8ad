"""Ray Data: what was computed cannot be written."""

import ray

ray.init()
squares = ray.data.range(50).map(lambda row: {"id": row["id"], "square": row["id"] ** 2})
squares.write_parquet("/proc/results")
