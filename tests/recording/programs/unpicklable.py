"""The driver hands a lock to a task."""

import threading

import ray


class Connection:
    def __init__(self):
        self.lock = threading.Lock()


@ray.remote
def load(connection, table):
    return connection, table


ray.init()
connection = Connection()
print(ray.get([load.remote(connection, table) for table in ("users", "orders")]))
