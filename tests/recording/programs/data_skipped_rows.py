"""Ray Data: a few blocks may fail, and do; the job goes on without them."""

import ray

ray.init()
ray.data.DataContext.get_current().max_errored_blocks = 3


def parse(row):
    if row["id"] == 31:
        raise ValueError(f"row {row['id']}: invalid literal for int() with base 10: 'n/a'")
    return {"value": row["id"] * 2}


values = ray.data.range(40, override_num_blocks=8).map(parse)
print("kept", values.count())
