"""Ray Serve: an application is deployed, scaled down, deployed anew and taken down. Nothing fails."""

from __future__ import annotations

import requests  # type: ignore[import-untyped, unused-ignore]  # the recording's environment has it
from ray import serve  # type: ignore[import-not-found, unused-ignore]  # ours does not have it
from starlette.requests import Request

PORT = 18765  # the usual one may be taken on the machine that records
ADDRESS = f"http://127.0.0.1:{PORT}/"


class Model:
    def __init__(self, version: int) -> None:
        self.version = version

    async def __call__(self, _: Request) -> int:
        return self.version


def main() -> None:
    serve.start(http_options={"port": PORT})
    model = serve.deployment(Model, name="Model", num_replicas=2, ray_actor_options={"num_cpus": 0.2})
    for version, replicas in ((1, 2), (1, 1), (2, 1)):
        serve.run(model.options(num_replicas=replicas).bind(version), name="chat")
        print(version, requests.get(ADDRESS, timeout=60).status_code, flush=True)
    serve.shutdown()


if __name__ == "__main__":
    main()
