"""Twenty orders are priced in parallel. Some fail once and are retried, one fails for good, and the job with it.

Run it with `raykeeper demo -- python examples/flaky_tasks.py`; the report then names the order and the line.
"""

from __future__ import annotations

import ray

PRICES = {"apple": 3, "bread": 5, "cheese": 9}


@ray.remote
class Attempts:
    """Counts how often each order was tried."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def next(self, order: int) -> int:
        self._counts[order] = self._counts.get(order, 0) + 1
        return self._counts[order]


@ray.remote(max_retries=2, retry_exceptions=[ConnectionError])
def price(order: int, item: str, attempts: Attempts) -> int:
    if order % 5 == 0 and ray.get(attempts.next.remote(order)) == 1:
        raise ConnectionError(f"order {order}: the price list did not answer")
    return PRICES[item]


def main() -> None:
    ray.init()
    attempts = Attempts.remote()
    items = ["apple", "bread", "cheese", "apple"] * 5
    items[13] = "durian"  # not in the price list: KeyError, which no retry mends
    total = sum(ray.get([price.remote(order, item, attempts) for order, item in enumerate(items)]))
    print(f"all orders together: {total}")


if __name__ == "__main__":
    main()
