"""Ray Serve: requests pass three deployments, and the last raises for some of them."""

import requests
from ray import serve
from starlette.requests import Request

PORT = 18765


@serve.deployment(ray_actor_options={"num_cpus": 0.2})
class Ranker:
    def rank(self, scores):
        average = sum(scores) / len(scores)
        return [score / average for score in scores]


@serve.deployment(ray_actor_options={"num_cpus": 0.2})
class Scorer:
    def __init__(self, ranker):
        self.ranker = ranker

    async def score(self, words):
        return await self.ranker.rank.remote([len(word) for word in words])


@serve.deployment(ray_actor_options={"num_cpus": 0.2})
class Ingress:
    def __init__(self, scorer):
        self.scorer = scorer

    async def __call__(self, request: Request):
        return await self.scorer.score.remote(request.query_params["q"].split())


serve.start(http_options={"port": PORT})
serve.run(Ingress.bind(Scorer.bind(Ranker.bind())), name="search")
for query in ("ray serve", "ray", "", "deep learning", " "):
    print(repr(query), requests.get(f"http://127.0.0.1:{PORT}/", {"q": query}, timeout=60).status_code)
serve.shutdown()
