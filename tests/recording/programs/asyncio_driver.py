"""The driver is a program of asyncio that gathers results."""

import asyncio

import ray


@ray.remote(max_retries=0)
def price(symbol):
    quotes = {"AAA": "12.5", "BBB": "n/a"}
    return float(quotes[symbol])


async def main():
    ray.init()
    print(await asyncio.gather(*(price.remote(symbol) for symbol in ("AAA", "BBB", "AAA"))))


asyncio.run(main())
