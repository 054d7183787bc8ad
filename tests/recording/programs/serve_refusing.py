"""Ray Serve with FastAPI: the application itself answers 500, without an exception that goes further."""

import requests
from fastapi import FastAPI, HTTPException
from ray import serve

PORT = 18765
app = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0.3})
@serve.ingress(app)
class Search:
    @app.get("/find")
    def find(self, text: str):
        if text == "old":
            raise HTTPException(500, "index 2019 is not loaded")
        return {"hits": 1}


serve.start(http_options={"port": PORT})
serve.run(Search.bind(), name="search")
for text in ("new", "old", "new", "old"):
    print(text, requests.get(f"http://127.0.0.1:{PORT}/find", {"text": text}, timeout=60).status_code)
serve.shutdown()
