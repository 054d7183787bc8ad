"""An actor's process is killed while nobody waits for it, and its job succeeds."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


class Cache:
    def warm(self) -> int:
        threading.Timer(1.0, self._end).start()
        return os.getpid()

    def _end(self) -> None:
        print("cache: arena 7 is corrupt", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)


def main() -> None:
    ray.init()
    cache = ray.remote(num_cpus=0.5)(Cache).options(name="cache-eu").remote()
    pid = ray.get(cache.warm.remote())
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.2)
    time.sleep(3)  # Ray notices it, and says so
    print("done without the cache", flush=True)


if __name__ == "__main__":
    main()
