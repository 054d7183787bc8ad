"""An actor whose process dies more often than it may be started again."""

from __future__ import annotations

import os

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


class Decoder:
    def decode(self, frame: int) -> int:
        print(f"decoding frame {frame}", flush=True)
        if frame == 3:
            os._exit(139)  # as a native library does that reads where it must not
        return frame


def main() -> None:
    ray.init(log_to_driver=False)
    decoder = ray.remote(num_cpus=0.5, max_restarts=1, max_task_retries=2)(Decoder).remote()
    for frame in range(6):
        print(f"frame {ray.get(decoder.decode.remote(frame))}", flush=True)


if __name__ == "__main__":
    main()
