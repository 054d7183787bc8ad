"""Ray Serve: requests are batched, and a batch with an empty text breaks the model."""

import concurrent.futures

import requests
from ray import serve
from starlette.requests import Request

PORT = 18765


@serve.deployment(ray_actor_options={"num_cpus": 0.3}, max_ongoing_requests=16)
class Embedder:
    @serve.batch(max_batch_size=4, batch_wait_timeout_s=0.2)
    async def embed(self, texts):
        longest = max(len(text) for text in texts)
        return [self.pad(text, longest) for text in texts]

    def pad(self, text, longest):
        if not text:
            raise IndexError(f"cannot pad an empty text to {longest} tokens")
        return text.ljust(longest)

    async def __call__(self, request: Request):
        return await self.embed(request.query_params["text"])


def status_of(text):
    return requests.get(f"http://127.0.0.1:{PORT}/", {"text": text}, timeout=60).status_code


serve.start(http_options={"port": PORT})
serve.run(Embedder.bind(), name="embed")
print([status_of(text) for text in ("one", "two")])
with concurrent.futures.ThreadPoolExecutor(4) as threads:
    print(list(threads.map(status_of, ["three", "", "five", "six"])))
serve.shutdown()
