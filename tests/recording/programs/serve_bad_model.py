"""Ray Serve: no replica of a deployment ever starts, because its weights are not there."""

from __future__ import annotations

from ray import serve  # type: ignore[import-not-found, unused-ignore]  # the recording's environment has it, ours does not
from starlette.requests import Request


class Model:
    def __init__(self) -> None:
        raise FileNotFoundError("weights llama-8b.safetensors are not in /models")

    async def __call__(self, _: Request) -> str:
        return "never"


def main() -> None:
    serve.start(http_options={"port": 18765})  # the usual one may be taken on the machine that records
    model = serve.deployment(Model, name="Model", ray_actor_options={"num_cpus": 0.5})
    serve.run(model.bind(), name="chat")


if __name__ == "__main__":
    main()
