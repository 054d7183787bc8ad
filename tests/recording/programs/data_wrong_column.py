"""Ray Data: a filter asks for a column under its old name."""

import ray

ray.init()


def is_large(row):
    return row["amount_eur"] > 50


orders = ray.data.from_items([{"id": n, "amount": n * 10} for n in range(20)])
print(orders.filter(is_large).count())
