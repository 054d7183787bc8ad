"""Ray Serve: a replica raises over some requests, and lives on."""

from __future__ import annotations

import requests  # type: ignore[import-untyped, unused-ignore]  # the recording's environment has it
from ray import serve  # type: ignore[import-not-found, unused-ignore]  # ours does not have it
from starlette.requests import Request

PORT = 18765  # the usual one may be taken on the machine that records
ADDRESS = f"http://127.0.0.1:{PORT}/"

PRICES = {"apple": 3, "pear": 4}


class Shop:
    async def __call__(self, request: Request) -> int:
        return PRICES[request.query_params["fruit"]]


def main() -> None:
    serve.start(http_options={"port": PORT})
    shop = serve.deployment(Shop, name="Shop", ray_actor_options={"num_cpus": 0.5})
    serve.run(shop.bind(), name="market")
    for fruit in ("apple", "pear", "plum", "apple", "plum"):
        print(fruit, requests.get(ADDRESS, {"fruit": fruit}, timeout=60).status_code, flush=True)
    serve.shutdown()


if __name__ == "__main__":
    main()
