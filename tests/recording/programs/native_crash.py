"""A native library reads where it must not: the worker dies by SIGSEGV."""

import ctypes

import ray


def decode(frame):
    if frame == 5:
        return ctypes.string_at(0)  # what a bad pointer does
    return b"pixels"


@ray.remote(max_retries=0)
def thumbnail(frame):
    return len(decode(frame))


ray.init()
for frame in range(8):
    print(frame, ray.get(thumbnail.remote(frame)))
