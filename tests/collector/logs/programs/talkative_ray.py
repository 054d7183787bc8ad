"""Runs under Ray's own Python: a small Ray whose tasks and actors print much, then its end.

Arguments: the folder for Ray's files, lines for each worker. Prints the session directory first.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def talk(name: str, lines: int) -> None:
    """Print numbered lines, at the speed of a program that does something in between."""
    for number in range(lines):
        print(f"{name} says line {number:06d} of its long story", flush=True)
        if number % 50 == 0:
            time.sleep(0.05)


class Complainer:
    """Writes to standard error and fails."""

    def complain(self) -> None:
        print("something is wrong", file=sys.stderr, flush=True)
        raise ValueError("wrong on purpose")


def main(folder: str, lines: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us with `&` had it ignored, for Ray too
    context = ray.init(num_cpus=2, _temp_dir=folder, include_dashboard=False, log_to_driver=False)
    print(context.address_info["session_dir"], flush=True)
    complainer = ray.remote(num_cpus=0)(Complainer).remote()
    waiting = [ray.remote(talk).remote(f"task-{number}", lines) for number in range(2)]
    with contextlib.suppress(ValueError):
        ray.get(complainer.complain.remote())
    ray.get(waiting)
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
