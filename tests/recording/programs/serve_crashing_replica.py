"""Ray Serve: a replica's process dies over a request, and Serve makes another."""

from __future__ import annotations

import os
import sys
import time

import requests  # type: ignore[import-untyped, unused-ignore]  # the recording's environment has it
from ray import serve  # type: ignore[import-not-found, unused-ignore]  # ours does not have it
from starlette.requests import Request

PORT = 18765  # the usual one may be taken on the machine that records
ADDRESS = f"http://127.0.0.1:{PORT}/"


class Model:
    async def __call__(self, request: Request) -> str:
        text = request.query_params["text"]
        if text == "poison":
            print("tokenizer: vocabulary entry 50257 is out of range", file=sys.stderr, flush=True)
            os._exit(139)  # as a native library does that reads where it must not
        return text.upper()


def answer_to(text: str) -> int:
    status: int = requests.get(ADDRESS, {"text": text}, timeout=60).status_code
    return status


def main() -> None:
    serve.start(http_options={"port": PORT})
    model = serve.deployment(Model, name="Model", ray_actor_options={"num_cpus": 0.5})
    serve.run(model.bind(), name="chat")
    print([answer_to("hello") for _ in range(10)], answer_to("poison"), flush=True)
    deadline = time.monotonic() + 60
    while answer_to("again") != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    serve.shutdown()


if __name__ == "__main__":
    main()
