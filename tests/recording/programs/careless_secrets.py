"""A program that writes its secrets everywhere: variables, runtime environments, errors and logs.

The secrets are in the variable PLANTED of its environment, as a JSON object.
"""

from __future__ import annotations

import json
import os

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def say(secrets: dict[str, str]) -> None:
    for text in secrets.values():
        print(text, flush=True)


def connect(text: str) -> None:
    raise ConnectionError(f"cannot connect: {text}")


class Client:
    def __init__(self, text: str) -> None:
        raise PermissionError(f"refused: {text}")

    def ask(self) -> None:
        """Never comes to it."""


def main() -> None:
    ray.init(log_to_driver=False)
    planted = json.loads(os.environ["PLANTED"])
    say(planted)
    ray.get(ray.remote(num_cpus=0.5)(say).options(runtime_env={"env_vars": planted}).remote(planted))
    failing = [ray.remote(num_cpus=0.5)(connect).remote(text) for text in planted.values()]
    ray.wait(failing, num_returns=len(failing))
    client = ray.remote(num_cpus=0.5)(Client).options(runtime_env={"env_vars": planted}).remote(str(planted))
    ray.wait([client.ask.remote()], timeout=20)
    raise SystemExit("\n".join(planted.values()))


if __name__ == "__main__":
    main()
