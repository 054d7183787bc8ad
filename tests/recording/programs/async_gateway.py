"""An async actor fans requests out; one of them gets an answer it cannot read."""

import asyncio
import json

import ray

ANSWERS = ['{"price": 10}', '{"price": 12}', "<html>502 Bad Gateway</html>", '{"price": 9}']


@ray.remote
class Gateway:
    async def fetch(self, number):
        await asyncio.sleep(0.05)
        return parse(ANSWERS[number])

    async def fetch_all(self):
        return await asyncio.gather(*(self.fetch(number) for number in range(len(ANSWERS))))


def parse(text):
    return json.loads(text)["price"]


ray.init()
gateway = Gateway.options(name="gateway-eu").remote()
print(ray.get(gateway.fetch_all.remote()))
