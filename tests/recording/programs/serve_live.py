"""Ray Serve under load: a replica crashes once, and a user without an embedding gets 500 each time."""

import os
import sys
import time

import requests
from ray import serve
from starlette.requests import Request

PORT = 18765
EMBEDDINGS = {f"u{number}": [0.1] * 4 for number in range(10)}


@serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 0.3})
class Model:
    async def __call__(self, request: Request):
        user = request.query_params["user"]
        if user == "crash":
            print("malloc(): corrupted top size", file=sys.stderr, flush=True)
            os._exit(139)
        if user not in EMBEDDINGS:
            raise KeyError(f"no embedding for user {user}")
        return EMBEDDINGS[user]


@serve.deployment(ray_actor_options={"num_cpus": 0.3})
class Gateway:
    def __init__(self, model):
        self.model = model

    async def __call__(self, request: Request):
        return await self.model.remote(request)


def status_for(user):
    return requests.get(f"http://127.0.0.1:{PORT}/", {"user": user}, timeout=60).status_code


serve.start(http_options={"port": PORT})
serve.run(Gateway.bind(Model.bind()), name="recommender")
statuses = [status_for("u99" if number % 10 == 9 else f"u{number % 9}") for number in range(78)]
statuses.append(status_for("crash"))
print(statuses.count(200), "of", len(statuses), "answered")
time.sleep(8)
serve.shutdown()
