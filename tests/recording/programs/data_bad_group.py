"""Ray Data: one group of many has no rows that count."""

import pandas as pd
import ray

ray.init()


def weighted_mean(group: pd.DataFrame) -> pd.DataFrame:
    weight = int(group["weight"].sum())
    value = int((group["value"] * group["weight"]).sum()) // weight
    return pd.DataFrame({"region": group["region"].iloc[:1], "value": [value]})


rows = [
    {"region": region, "value": n, "weight": 0 if region == "west" else 1}
    for region in ("north", "west")
    for n in range(5)
]
print(ray.data.from_items(rows).groupby("region").map_groups(weighted_mean, batch_format="pandas").take_all())
