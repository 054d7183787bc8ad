"""A user's own script: prints where it runs, has one task succeed and one fail, and ends with the code it was given."""

from __future__ import annotations

import sys
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # Ray's environment has it, ours does not


def greet(name: str) -> str:
    return f"hello {name}"


def stumble() -> None:
    raise RuntimeError("stumbled on purpose")


ray.init(log_to_driver=False)
print(f"in {Path.cwd().name}: {ray.get(ray.remote(greet).remote(sys.argv[1]))}", flush=True)
try:
    ray.get(ray.remote(max_retries=0)(stumble).remote())
except ray.exceptions.RayTaskError:
    sys.exit(int(sys.argv[2]))
