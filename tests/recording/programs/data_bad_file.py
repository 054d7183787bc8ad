"""Ray Data: one of three Parquet files is none."""

from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import ray

folder = Path(mkdtemp(prefix="rk-lake-"))
for number in range(3):
    pd.DataFrame({"id": range(10)}).to_parquet(folder / f"part-{number}.parquet")
(folder / "part-1.parquet").write_text("<Error><Code>AccessDenied</Code></Error>")
ray.init()
rows = ray.data.read_parquet(str(folder))
print(rows.sum("id"))
