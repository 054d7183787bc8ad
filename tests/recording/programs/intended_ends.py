"""Actors end in every way that a program can ask for. Nothing fails."""

from __future__ import annotations

import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


class Worker:
    def ready(self) -> bool:
        return True

    def leave(self) -> None:
        ray.actor.exit_actor()


def main() -> None:
    ray.init()
    make = ray.remote(num_cpus=0.2)(Worker)
    killed, dropped, leaving, ended, last = (make.remote() for _ in range(5))
    ray.get([one.ready.remote() for one in (killed, dropped, leaving, ended, last)])
    ray.kill(killed)
    del dropped
    leaving.leave.remote()
    ended.__ray_terminate__.remote()
    time.sleep(3)  # Ray notices them, and says so
    print("done", last, flush=True)


if __name__ == "__main__":
    main()
