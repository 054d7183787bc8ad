"""Ray Data: a column cannot be cast to the type that the user's function wants."""

import pyarrow as pa
import pyarrow.compute as pc
import ray


def to_cents(table: pa.Table) -> pa.Table:
    cents = pc.cast(table["price"], pa.int64())
    return table.append_column("cents", cents)


ray.init()
prices = ray.data.from_items([{"price": "10"}, {"price": "n/a"}, {"price": "7"}])
print(prices.map_batches(to_cents, batch_format="pyarrow").take_all())
