"""The driver waits eight seconds for a task that never ends."""

import threading

import ray


@ray.remote
def reindex(table):
    threading.Event().wait()  # nobody ever sets it
    return table


ray.init()
work = reindex.remote("orders")
print(ray.get(work, timeout=8))
