"""Ray Data: one record of a hundred has a price that is no number."""

from __future__ import annotations

from typing import Any

import ray  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not

Row = dict[str, Any]


def parse(row: Row) -> Row:
    text = "12,99 EUR" if row["id"] == 57 else f"{row['id']}.99"
    return {"id": row["id"], "price": float(text)}


def main() -> None:
    ray.init()
    prices = ray.data.range(100, override_num_blocks=4).map(parse)
    print(f"total {prices.sum('price')}", flush=True)


if __name__ == "__main__":
    main()
