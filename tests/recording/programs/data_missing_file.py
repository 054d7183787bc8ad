"""Ray Data: the file to read is not there."""

import ray

ray.init()
orders = ray.data.read_csv("/mnt/lake/orders/2026-03.csv")
print(orders.map(lambda row: {"amount": row["amount"] * 2}).sum("amount"))
