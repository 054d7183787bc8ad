"""A worker crashes once, and its task is tried again; the job goes well."""

import os
import tempfile

import ray

MARK = os.path.join(tempfile.mkdtemp(prefix="rk-mark-"), "crashed")


@ray.remote(max_retries=2)
def compact(mark):
    if not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(9)
    return "compacted"


ray.init()
print(ray.get(compact.remote(MARK)))
