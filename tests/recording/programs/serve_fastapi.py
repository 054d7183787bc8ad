"""Ray Serve with FastAPI: one route divides by what a client sends; others answer."""

import requests
from fastapi import FastAPI
from ray import serve

PORT = 18765
app = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0.3})
@serve.ingress(app)
class Loans:
    @app.get("/health")
    def health(self):
        return "ok"

    @app.get("/rate")
    def rate(self, income: int, debt: int):
        return {"rate": debt / income}


serve.start(http_options={"port": PORT})
serve.run(Loans.bind(), name="loans")
for path in (
    "health",
    "rate?income=100&debt=20",
    "rate?income=0&debt=5",
    "rate?income=x&debt=1",
    "rate?income=0&debt=9",
):
    print(path, requests.get(f"http://127.0.0.1:{PORT}/{path}", timeout=60).status_code)
serve.shutdown()
